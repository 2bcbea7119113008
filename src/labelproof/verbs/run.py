"""A run: what `fit` and `train` return, and what `load_run` loads from a folder."""

from __future__ import annotations

import json
import os
import shlex
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from labelproof.audit.folder import Audit
from labelproof.audit.labels import conclude
from labelproof.audit.noise_model import count_pairs
from labelproof.audit.predictions import predict_trained
from labelproof.data.dataset import Dataset
from labelproof.data.images import OnError
from labelproof.data.labels_file import relabel
from labelproof.data.load import LabelledData, load_dataset
from labelproof.data.notices import DataWarning, count, notice, readable
from labelproof.data.splits import split_name
from labelproof.data.table import is_table
from labelproof.ranges import choose
from labelproof.report.audit_words import remark
from labelproof.tabular.run import name_blend, read_held_out
from labelproof.training.export import EXPORTS, export_run
from labelproof.training.run_folder import METRICS
from labelproof.training.trained_network import TrainedNetwork, load_network
from labelproof.verbs.evaluation import Evaluation, TrainingData
from labelproof.verbs.inputs import Request, TemporaryFolder
from labelproof.verbs.predictions import NewData, predict_data
from labelproof.verbs.progress import Callback, Reporter


@dataclass(frozen=True, repr=False)
class Run(TrainedNetwork):
    """A trained network with its settings and record, as `fit`, `train` and `load_run` return it.

    The network of a table is a [`Blend`][labelproof.models.blend.Blend] of classifiers, unless a
    network was requested; `record.candidates` lists the classifiers.

    `network`, `configuration`, `record`, `epochs`, `folder` and `device` are as for
    [`TrainedNetwork`][labelproof.training.trained_network.TrainedNetwork].

    Attributes:
        given: The data, if they were given in memory.
        keeper: The temporary folder of a run without `output`; it is removed with the run.
    """

    given: LabelledData | None = None
    keeper: TemporaryFolder | None = None

    @property
    def metrics(self) -> pd.DataFrame:
        """The metrics, one row for each epoch, counted from 1."""
        lines = (self.folder / METRICS).read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines[: self.epochs]]
        epochs = pd.RangeIndex(1, len(rows) + 1, name="epoch")
        return pd.DataFrame(rows, index=epochs).drop(columns="epoch", errors="ignore")

    def predict(self, data: NewData, *, on_error: OnError = "raise") -> pd.DataFrame:
        """Predict the label of each sample, with the probability of each class.

        Args:
            data: For a run on a table, a table's path, a DataFrame with the same columns in any
                order, or an array `(N, F)`. For one on images, an image file, a folder of images, a
                table that names them, or an array of them. A list of paths. Or a dataset or its
                name: its test split, or its training split if there is none. Labels are not needed.
            on_error: How to handle cells of a table that are not numbers: `"raise"` refuses the
                table, `"skip"` treats them as missing.

        Returns:
            A DataFrame with the columns `label`, `probability` and one for each class, such as
            `p(cat)`. Classes that are whole numbers, or true and false, are no text there. Its
            index is that of a DataFrame, the line in a table's file, the path of an image or the
            position in an array.

        Warns:
            DataWarning: An image cannot be read; it is left out.
        """
        return predict_data(self, data, on_error=on_error)

    def evaluate(
        self,
        data: LabelledData | None = None,
        *,
        label: str | None = None,
        labels: str | os.PathLike[str] | None = None,
        split: str = "test",
        on_error: OnError = "raise",
        data_root: str | os.PathLike[str] | None = None,
    ) -> Evaluation:
        """Measure the accuracy, overall and of each class, and which classes are confused.

        Args:
            data: As for `fit`; by default the data the run was trained on.
            label: The column with the labels; by default the one the run was trained on.
            labels: A file of labels that replaces those of the training split.
            split: The split to evaluate. Data without splits are evaluated as a whole.
            on_error: `"skip"` leaves out images that cannot be read and rows without a label.
            data_root: See `fit`.
        """
        trained_on = TrainingData(self, data_root, self.given)
        description = self.description
        own = data is None
        data = self.given if data is None else data
        if data is None:
            data = trained_on.find()
            # The run's own data are read as the run read them.
            if trained_on.asked:
                on_error = "skip"
            if labels is None and split == "train":
                labels = trained_on.find_labels()
        name = os.fspath(data) if isinstance(data, str | os.PathLike) else None
        framed = not isinstance(data, tuple | Dataset) if name is None else is_table(name)
        if label is None and framed:
            label = description.label
        like = (self.columns, description.class_names) if self.tabular else None
        root = trained_on.root
        dataset = load_dataset(data, root=root, on_error=on_error, label=label, like=like)
        # Before relabelling: labels may be corrected to a class that these data lack.
        dataset = dataset.in_classes(description.class_names)
        if labels is not None:
            dataset = relabel(dataset, name or "table", labels)
        if not own and split == "test" and "test" not in dataset.splits:
            split = "train"  # all there is in data without splits
        split = split if split in dataset.splits else split_name(split) or split
        if split not in dataset.splits:
            there = f"{dataset.name} has no {split} split, only {', '.join(dataset.splits)}"
            raise ValueError(f"{there}; name labelled data that the run has not seen with --data")
        chosen, classes = dataset.splits[split], len(description.class_names)
        predicted = torch.cat([batch.argmax(dim=1) for batch in self.logits(chosen.images)])
        learned_from_n = len(chosen) if split == "train" else 0
        if own and trained_on.changed(dataset):
            why = f"not what {self.folder} was trained on, or changed since"
            what = "name the data to evaluate on with --data PATH"
            warnings.warn(f"{readable(str(data))}: {why}; {what}", stacklevel=2)
            learned_from_n = None
        elif not own:
            learned_from_n = trained_on.count(chosen)
        # The only split of other data need not be named.
        alone = not own and len(dataset.splits) == 1
        return Evaluation(
            run=str(self.folder),
            epochs=self.epochs,
            finished=self.record is not None,
            data=dataset.name,
            split=split,
            place=readable(name or dataset.name) if alone else f"{dataset.name}, {split}",
            what="rows" if dataset.tabular else "images",
            class_names=description.class_names,
            counts=count_pairs(chosen.labels, predicted.numpy(), classes).astype(np.int64),
            learned_from_n=learned_from_n,
        )

    def export(
        self, path: str | os.PathLike[str] | None = None, *, format: str | None = None
    ) -> Path:
        """Write the network as one file that runs without labelproof, and return its path.

        Args:
            path: The file; by default `model.onnx` or `model.pt2` in the run's folder.
            format: `onnx`, which needs the extra `onnx`, or `torch-export`; by default the one
                whose ending the path has, else `onnx`.
        """
        if format is None:
            ending = "" if path is None else Path(path).suffix
            format = next((name for name, end in EXPORTS.items() if end == ending), "onnx")
        choose("format", format, tuple(EXPORTS))
        file = self.folder / f"model{EXPORTS[format]}" if path is None else Path(path)
        export_run(self, file, format=format)
        return file

    def audit(
        self,
        *,
        human_labels: Path | None = None,
        data_root: str | os.PathLike[str] | None = None,
        progress: Reporter | Callback | bool | None = None,
    ) -> Audit:
        """Find wrong labels among those the run was trained on, without training.

        The blend of a table has held out every label once. A network has seen these labels, and
        misses those that it memorised; `labelproof.audit` judges each label by one that has not.

        Args:
            human_labels: The file of human labels, for a run with noise such as `human:worse`.
            data_root: See `fit`.
            progress: As for `labelproof.fit`.

        Warns:
            DataWarning: Too little was learned for the figures to be trusted.
        """
        trained_on = TrainingData(self, data_root, self.given)
        options = {"human_labels": human_labels, "on_error": "skip", "progress": progress}
        request = trained_on.request(**options)
        with warnings.catch_warnings():
            if self.given is not None:  # `fit` read the same data, and warned of them
                warnings.simplefilter("ignore", DataWarning)
            dataset = request.dataset
        if self.given is None and trained_on.is_same(dataset) is False:
            raise ValueError(
                f"{readable(request.called)}: not what {self.folder} was trained on, or changed "
                f"since; to audit it as it is now: 'labelproof audit {shlex.quote(request.called)}'"
            )
        found = audit_run(self, request)
        caution = remark("caution", found)
        if caution and not isinstance(progress, Reporter):  # a command says it itself
            notice(caution)
        return found

    @property
    def _facts(self) -> dict[str, str]:
        """What `repr` shows, by name."""
        trained, curve = self.configuration, {} if self.record is None else self.record.curve
        facts = {"data": trained.data, "network": trained.network}
        if self.blended and self.record is not None:
            facts["network"] = name_blend(self.record.candidates)
        else:
            facts |= {"loss": trained.loss, "epochs": f"{self.epochs} of {trained.epochs}"}
        for name in ("validation_accuracy", "test_accuracy"):
            if name in curve:
                facts[name.replace("_", " ")] = f"{curve[name][-1]:.2f}%"
        return facts | {"folder": str(self.folder)}

    def __repr__(self) -> str:
        return f"Run({', '.join(f'{name}: {value}' for name, value in self._facts.items())})"

    def _repr_html_(self) -> str:
        return pd.Series(self._facts).to_frame().to_html(header=False)


def load_run(
    folder: str | os.PathLike[str],
    device: str = "cpu",
    *,
    network: str | None = None,
    **kept: Any,
) -> Run:
    """Load a run, finished or under way, with the weights of its last checkpoint.

    Nothing in the folder is executed. A network that is a `package.module:factory` is imported only
    if the caller names it, too.

    Args:
        folder: The run's folder.
        device: `auto`, or a device's name.
        network: The run's own `package.module:factory`, to allow its code to run.
        kept: Further attributes of the `Run`.

    Raises:
        FileNotFoundError: The folder is not a run's, or the run has no checkpoint yet.
        ValueError: Its files are damaged, the weights do not fit the network, or the network is a
            factory that `network` does not name.

    Warns:
        UserWarning: The run is not finished, or is damaged but usable.
    """
    run = Run(**vars(load_network(folder, device, network=network)), **kept)
    if run.record is None:
        epochs = count(run.configuration.epochs, "epoch")
        why = f"is not finished: it has trained {run.epochs:,} of {epochs}; its command resumes it"
        warnings.warn(f"{run.folder} {why}", stacklevel=2)
    return run


def audit_run(run: TrainedNetwork, request: Request, prepared: Dataset | None = None) -> Audit:
    """Audit data by the predictions of a run trained on them; a blend's are out-of-sample.

    `prepared` are the data as the network sees them, if they were decoded already.
    """
    configuration, dataset = run.configuration, request.dataset
    if run.blended and run.record is not None:
        predictions = read_held_out(run)
        network = name_blend(run.record.candidates)
        method: dict[str, Any] = {"predictions": "cross-validation", "network": network}
    else:
        with request.reporter.working("Predicting the training samples"):
            seen = dataset if prepared is None else prepared
            predictions = predict_trained(run, seen, human=request.human)
        named = {name: getattr(configuration, name) for name in ("network", "loss")}
        method = {"predictions": "run", **named, "epochs": run.epochs}
    method["noise"] = None if configuration.noise == "none" else configuration.noise
    options = request.reading.options()
    return conclude(dataset, predictions, data=request.place, method=method, options=options)
