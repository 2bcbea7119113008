"""What a trained network says about the samples it was trained on."""

from __future__ import annotations

import os

import numpy as np

from labelproof.audit.cross_validation import Predictions
from labelproof.data.dataset import Dataset
from labelproof.training.evaluation import CHUNK
from labelproof.training.examples import choose_examples
from labelproof.training.trained_network import TrainedNetwork

__all__ = ["predict_trained"]


def predict_trained(
    run: TrainedNetwork, dataset: Dataset, *, human: str | os.PathLike[str] | None = None
) -> Predictions:
    """Have a run look at its own training samples once more, and those it held out.

    It has seen most of their labels. A network that was trained with a robust loss has not
    memorised the wrong ones, so this serves; where it has, a wrong label passes for a right one,
    which cross-validation rules out.

    Args:
        run: The trained network.
        dataset: What it was trained on, in the size that it looks at; the noise of the run's
            configuration is put on the labels again.
        human: The file of human labels, for noise such as `human:worse`.

    Raises:
        ValueError: The dataset's classes are not the run's.
    """
    if dataset.class_names != run.description.class_names:
        known = ", ".join(run.description.class_names)
        found = ", ".join(dataset.class_names)
        raise ValueError(
            f"{dataset.name}: expected the classes that {run.folder} was trained on ({known}), got "
            f"{found}"
        )
    examples = choose_examples(run.configuration, dataset, human=human)
    index = np.sort(np.concatenate([examples.used, examples.held]))
    logits = np.concatenate([batch.numpy() for batch in run.logits(dataset.train.images, CHUNK)])
    curves = [run.record.curve] if run.record is not None else []
    unseen = np.isin(index, examples.held)
    return Predictions(logits[index], index, examples.given[index], curves, unseen)
