"""Frozen features: a network keeps its weights, and only its last layer is trained.

Each image passes through the network once. The last layer is then trained on the features like on
the rows of a table, with a robust loss, which takes seconds on a CPU.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from labelproof.data.dataset import Dataset
from labelproof.data.notices import few
from labelproof.fitting import recipe
from labelproof.fitting.attempts import Attempts, train_robustly
from labelproof.models.pretrained import is_pretrained
from labelproof.npz import read_npz
from labelproof.training.augmentation import parse_augmentation
from labelproof.training.batches import generator_for
from labelproof.training.checkpoint import newest_whole
from labelproof.training.configuration import Configuration
from labelproof.training.examples import choose_examples
from labelproof.training.execution import Execution, StopRequest
from labelproof.training.provenance import describe, mark_data
from labelproof.training.record import read_record, sizes
from labelproof.training.run_folder import PREDICTIONS, History, RunFolder
from labelproof.training.runner import Event, Job
from labelproof.training.trained_network import TrainedNetwork

_FEATURES = 512
"""Typical number of features of a network, for the weight decay."""
_IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
"""The normalisation that pretrained networks were trained with."""


def frozen_settings(dataset: Dataset, network: str) -> dict[str, Any]:
    """Settings to train the last layer of a network: as on a table, without augmentation.

    >>> from labelproof.data import load_digits
    >>> settings = frozen_settings(load_digits(), "cnn4")
    >>> settings["epochs"], settings["batch_size"], settings["augmentation"]
    (20, 32, 'none')
    """
    usual = recipe.network_for(recipe.look_at(dataset)).get("augmentation", "none")
    crop = 224 if is_pretrained(network) else parse_augmentation(usual).resized_crop
    rows = recipe.choose_setting((_FEATURES,), len(dataset.train))
    same = ("batch_size", "epochs", "learning_rate", "weight_decay")
    return {name: getattr(rows, name) for name in same} | {
        "augmentation": f"resized-crop:{crop}" if crop else "none",
        "loss": recipe.complete_loss(recipe.ROBUST, epochs=rows.epochs),
    }


def train_frozen(
    job: Job,
    dataset: Dataset,
    execution: Execution,
    *,
    weights: str | os.PathLike[str] | None,
    attempts: Attempts,
    weaken: bool,
    stop: StopRequest,
) -> Iterator[Event]:
    """Train the last layer, yield its events, and write the run's folder at the end.

    If stopped before that, it starts over.

    Args:
        job: The network and how to train its last layer, with a folder.
        dataset: Images.
        execution: The device.
        weights: A safetensors file of the network's weights, unless it is pretrained.
        attempts: Losses that collapsed; new ones are added.
        weaken: Whether the penalty may be weakened.
        stop: Checked between steps.

    Raises:
        ValueError: The file does not fit the network, or the network has no last linear layer.
    """
    assert job.folder is not None  # noqa: S101
    started, configuration = time.perf_counter(), job.configuration
    examples = choose_examples(configuration, dataset)
    body, head = _load_body(configuration, dataset, weights, execution)
    yield Event(job, "notice", f"Passing {len(dataset.train):,} images through the network, once")
    rows = _as_rows(body, head, dataset, stop)
    if rows is None:
        return
    learner = replace(
        configuration, network="mlp(depth=0)", augmentation="none", precision="float32"
    )
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name) / "head"
        for event in train_robustly(
            [Job(learner, scratch)],
            Execution(torch.device("cpu")),
            load=lambda _: replace(examples, dataset=rows),
            attempts=attempts,
            note=lambda: None,
            weaken=weaken,
            stop=stop,
        ):
            if event.kind not in ("finished", "stopped"):
                yield replace(event, job=job)
        layer = newest_whole(scratch / "checkpoint")[1]
        record = read_record(scratch)
        if layer is None or record is None:
            return  # it was stopped
        arrays = read_npz(scratch / PREDICTIONS)
    _set_head(head, layer.weights, rows)
    configuration = attempts.configure(configuration)
    record = replace(
        record,
        name=configuration.name,
        configuration=configuration.as_values(),
        seconds=round(time.perf_counter() - started, 3),
        data=sizes(dataset) | {"fingerprint": mark_data(configuration, examples)},
    )
    attempts.write(job.folder)
    history = History(layer.values["metrics"], layer.values["timing"])
    tensors = body.network.state_dict()
    RunFolder(job.folder).write(body.description, tensors, history, record, arrays)
    yield Event(job, "finished", record)


def _load_body(
    configuration: Configuration,
    dataset: Dataset,
    weights: str | os.PathLike[str] | None,
    execution: Execution,
) -> tuple[TrainedNetwork, nn.Linear]:
    """The network with its frozen weights, and its last layer."""
    description = describe(configuration, dataset)
    if is_pretrained(configuration.network) and description.input_shape[0] == 3:
        description = replace(description, **_IMAGENET)
    network = description.make_network(generator_for(configuration.seed, "network 0"))
    linear = [pair for pair in network.named_modules() if isinstance(pair[1], nn.Linear)]
    place, head = linear[-1] if linear else ("", nn.Identity())
    classes = dataset.num_classes
    if not isinstance(head, nn.Linear) or head.bias is None or head.out_features != classes:
        raise ValueError(
            f"network: expected one that ends in a linear layer with a bias for {classes} classes, "
            f"got {configuration.network}"
        )
    if weights is not None:
        load_body_weights(network, Path(weights), place)
    device, network = execution.device, network.to(execution.device).eval()
    body = TrainedNetwork(Path(), configuration, description, network, None, 0, device)
    return body, head


def load_body_weights(network: nn.Module, path: Path, head: str) -> None:
    """Load all weights but those of the last layer from a file."""
    try:
        # Checkpoints of runs have this prefix.
        loaded = {name.removeprefix("weights."): value for name, value in load_file(path).items()}
    except (SafetensorError, OSError, ValueError) as error:
        raise ValueError(f"--weights: {path} cannot be read as safetensors: {error}") from None
    expected = {
        name: value
        for name, value in network.state_dict().items()
        if not name.startswith(f"{head}.") and not name.endswith("num_batches_tracked")
    }
    shapes = {name: value.shape for name, value in loaded.items()}
    if lacks := [name for name in expected if name not in shapes]:
        raise ValueError(
            f"--weights: expected weights of the network in {path}, it lacks {few(lacks)}"
        )
    for name, value in expected.items():
        if shapes[name] != value.shape:
            raise ValueError(
                f"--weights: expected {name} of shape {tuple(value.shape)}, {path} has it of shape "
                f"{tuple(shapes[name])}; was its network trained on images of another size "
                "(--augmentation resized-crop:SIDE) or of another width?"
            )
    network.load_state_dict({name: loaded[name] for name in expected}, strict=False)


def _as_rows(
    body: TrainedNetwork, head: nn.Linear, dataset: Dataset, stop: StopRequest
) -> Dataset | None:
    """What the last layer sees of each image, as the rows of a table; `None` if stopped."""
    splits, features = {}, list[Tensor]()

    def keep(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        features.append(inputs[0].flatten(1).float().cpu())

    # Not the network without its last layer: it may go on after it, such as with a log-softmax.
    with head.register_forward_pre_hook(keep):
        for name in {"train", "test"} & {*dataset.splits}:
            features.clear()
            for _ in body.logits(dataset.splits[name].images, 100):
                if stop.wanted:
                    return None
            splits[name] = replace(dataset.splits[name], images=torch.cat(features).numpy())
    train = splits["train"].array
    spread = train.std(axis=0, dtype=np.float64)
    mean, std = train.mean(axis=0, dtype=np.float64), np.where(spread > 0, spread, 1.0)
    return replace(dataset, splits=splits, mean=tuple(mean.tolist()), std=tuple(std.tolist()))


def _set_head(head: nn.Linear, layer: dict[str, Tensor], rows: Dataset) -> None:
    """Set the last layer to trained weights, adapted to features that are not standardised."""
    mean, std = torch.tensor(rows.mean).double(), torch.tensor(rows.std).double()
    weight = layer["head.weight"].double() / std
    bias = layer["head.bias"].double() - weight @ mean
    with torch.no_grad():
        head.weight.copy_(weight)
        head.bias.copy_(bias)
