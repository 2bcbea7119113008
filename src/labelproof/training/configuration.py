"""The configuration of a run: every setting that affects its result."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from labelproof.data.splits import parse_imbalance
from labelproof.losses import format_loss, parse_loss
from labelproof.losses.text import OwnLossError
from labelproof.models.text import format_network
from labelproof.noise import parse_noise
from labelproof.ranges import choose, flag, suggest, whole, within
from labelproof.schedules import Schedule, constant, cosine, exponential
from labelproof.text import format_value, parse_form
from labelproof.training.algorithms import format_algorithm
from labelproof.training.augmentation import parse_augmentation

PRECISIONS = ("auto", "float32", "bf16", "fp16")
"""Floating-point types of the network: `auto` is bf16 on CUDA and float32 elsewhere."""

OPTIMIZERS = ("sgd", "adamw")

CLASS_WEIGHTS = ("none", "balanced")

L1_ON = ("all", "weights")
"""Parameters that the l1 penalty covers: all, or those with more than one dimension."""

_MAX_LENGTH = 160
"""Maximum number of characters of a run's name before its seed."""

_ADDED = ("validation", "class_weight", "l1", "l1_on", "l1_before_clipping")
"""Settings added after the first records; at their defaults the run's name omits them."""

_SHORT = {format_algorithm(name): name for name in ("co-teaching", "nlnl")}
"""Algorithms whose defaults the first records did not write out; nor does the run's name."""


@dataclass(frozen=True)
class Configuration:
    """One training run: the data, the labels, the network, the loss and how it is trained.

    Text is normalised, so equal runs compare equal.

    Attributes:
        data: A dataset's name, or the path of your own.
        noise: Label noise to add, such as `symmetric:0.6`.
        loss: Such as `ce+sr`; see `labelproof losses`.
        algorithm: `supervised`, `co-teaching`, `nlnl` or `elr`, with arguments.
        network: Such as `cnn8`, `resnet34`, or `package.module:factory`.
        epochs: Passes over the training examples.
        batch_size: Examples per step, over all devices.
        optimizer: `sgd` or `adamw`.
        learning_rate: Learning rate of the first epoch.
        schedule: Learning-rate schedule: `cosine` (to 0), `cosine:0.001` (to that rate),
            `exponential:0.97`, `step:30:0.1`, `constant`.
        momentum: Momentum of SGD, or AdamW's first beta.
        nesterov: Whether SGD uses Nesterov momentum.
        weight_decay: Weight decay of all parameters.
        clip_norm: Norm to clip the gradient to; 0 does not clip.
        augmentation: Augmentation of training images: `crop:PIXELS`, `flip`, `rotation:DEGREES`,
            `resized-crop:SIDE`, `jitter:BRIGHTNESS:CONTRAST:SATURATION:HUE`, joined by commas; or
            `none`.
        precision: `auto`, `float32`, `bf16` or `fp16`.
        average: Decay of an exponential moving average of the weights, which is evaluated and saved
            in their place; 0 for none.
        imbalance: Class imbalance to create, such as `long-tailed:0.01`.
        seed: Seed of the noise, the weights, the order of examples and augmentation.
        validation: Share of the training examples to hold out; every epoch's metrics have the
            accuracy on their given labels.
        class_weight: `balanced` gives every class the same total weight; `none` gives every example
            the same weight.
        l1: Weight of the l1 norm of the parameters: `l1 * sign(w)` is added to the gradient. The
            training loss in the metrics excludes it.
        l1_on: `all` parameters, or only `weights`, without biases and batch norm's parameters.
        l1_before_clipping: Whether the l1 gradient is clipped with the loss's; otherwise it is
            added to the clipped gradient.

    Example:
        >>> run = Configuration("digits", noise="symmetric:.4", loss="ce + sr", epochs=3)
        >>> run.noise, run.loss
        ('symmetric:0.4', 'ce+sr(tau=0.5,p=0.1,lambda0=1.2,rho=1.03,r=1,normalize=true)')
        >>> Configuration("digits", precision="bf17")
        Traceback (most recent call last):
            ...
        ValueError: precision: expected one of auto, float32, bf16, fp16, got 'bf17'; did you mean
        'bf16'?
    """

    data: str
    noise: str = "none"
    loss: str = "ce"
    algorithm: str = "supervised"
    network: str = "cnn4"
    epochs: int = 50
    batch_size: int = 128
    optimizer: str = "sgd"
    learning_rate: float = 0.01
    schedule: str = "cosine"
    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 1e-3
    clip_norm: float = 5.0
    augmentation: str = "none"
    precision: str = "auto"
    average: float = 0.0
    imbalance: str = "none"
    seed: int = 1
    validation: float = 0.0
    class_weight: str = "none"
    l1: float = 0.0
    l1_on: str = "all"
    l1_before_clipping: bool = False

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type == "str" and not isinstance(value, str):
                kind = type(value).__name__
                raise TypeError(f"{field.name}: expected a text, got {value!r} ({kind})")
        if not self.data.strip():
            raise ValueError(f"data: expected a dataset's name or a path, got {self.data!r}")
        canonical = {
            "data": self.data.rstrip("/" + os.sep) or self.data,  # a shell may complete a slash
            "noise": str(parse_noise(self.noise)),
            "loss": format_loss(parse_loss(self.loss)),
            "algorithm": format_algorithm(self.algorithm),
            "network": format_network(self.network),
            "epochs": whole("epochs", self.epochs, 1),
            "batch_size": whole("batch_size", self.batch_size, 2),
            "optimizer": choose("optimizer", self.optimizer, OPTIMIZERS),
            "learning_rate": within("learning_rate", self.learning_rate, 0, open_low=True),
            "schedule": format_schedule(self.schedule),
            "momentum": within("momentum", self.momentum, 0, 1),
            "nesterov": flag("nesterov", self.nesterov),
            "weight_decay": within("weight_decay", self.weight_decay, 0),
            "clip_norm": within("clip_norm", self.clip_norm, 0),
            "augmentation": str(parse_augmentation(self.augmentation)),
            "precision": choose("precision", self.precision, PRECISIONS),
            "average": within("average", self.average, 0, 1),
            "imbalance": str(parse_imbalance(self.imbalance)),
            "seed": whole("seed", self.seed, 0),
            "class_weight": choose("class_weight", self.class_weight, CLASS_WEIGHTS),
            "validation": within("validation", self.validation, 0, 0.9),
            "l1": within("l1", self.l1, 0),
            "l1_on": choose("l1_on", self.l1_on, L1_ON),
            "l1_before_clipping": flag("l1_before_clipping", self.l1_before_clipping),
        }
        # Only here are both the learning rate and its floor known.
        learning_rate(self.schedule, self.learning_rate, epochs=self.epochs)
        if self.nesterov and (not self.momentum or self.optimizer == "adamw"):
            raise ValueError("nesterov: expected it only with sgd and a momentum above 0")
        if self.optimizer == "adamw" and self.momentum == 1:
            raise ValueError("momentum: expected a number below 1 for adamw, got 1")
        for name, value in canonical.items():
            # -0.0 equals 0.0 but prints differently, and so would give another name.
            object.__setattr__(self, name, value + 0.0 if isinstance(value, float) else value)

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Configuration:
        """From plain values, such as those of a TOML file or a record; refuses unknown names.

        >>> Configuration.from_values({"data": "digits", "epoch": 3})
        Traceback (most recent call last):
            ...
        ValueError: unknown setting 'epoch'; did you mean 'epochs'?
        """
        refuse_unknown(values)
        if "data" not in values:
            raise ValueError("data: expected a dataset's name or a path, got nothing")
        return cls(**values)

    @classmethod
    def recorded(cls, values: Mapping[str, Any]) -> Configuration:
        """From the values in a run's folder; the code of its own loss need not be available.

        >>> Configuration.recorded({"data": "digits", "loss": "mine@0a1b2c"}).loss
        'mine@0a1b2c'
        """
        try:
            return cls.from_values(values)
        except OwnLossError:
            configuration = cls.from_values({**values, "loss": "ce"})
            object.__setattr__(configuration, "loss", values["loss"])
            return configuration

    def as_values(self) -> dict[str, Any]:
        """As plain values, in the order of the attributes."""
        return dataclasses.asdict(self)

    def differences(self, other: Configuration) -> list[str]:
        """The names of the attributes that differ."""
        mine, theirs = self.as_values(), other.as_values()
        return [name for name in mine if mine[name] != theirs[name]]

    @property
    def name(self) -> str:
        """A readable and unique name: the main settings and a hash.

        >>> Configuration("mnist", noise="symmetric:0.8", loss="ce+sr", seed=2).name
        'mnist-symmetric-0.8-ce-sr-s2-44bf1a22'
        """
        values = self.as_values()
        for name in _ADDED:  # omitted, so that runs from before the setting keep their name
            if values[name] == getattr(type(self), name):
                del values[name]
        values["algorithm"] = _SHORT.get(self.algorithm, self.algorithm)
        text = json.dumps(values, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        loss = re.sub(r"\([^()]*\)", "", self.loss)
        algorithm = "" if self.algorithm == "supervised" else self.algorithm.split("(")[0]
        data = re.split(r"[/\\]", self.data.rstrip("/\\"))[-1]
        parts = [data, self.noise, self.imbalance, algorithm, loss]
        words = [re.sub(r"[^a-z0-9.]+", "-", part.lower()).strip("-.") for part in parts]
        chosen = [word for word in words if word and word != "none"]
        # File systems allow 255 characters; suffixes of files next to the folder need some of them.
        return "-".join(["-".join(chosen)[:_MAX_LENGTH].strip("-."), f"s{self.seed}", digest])


_FORMS = ["cosine", "cosine:FLOOR", "constant", "exponential:FACTOR", "step:EPOCHS:FACTOR"]


def learning_rate(schedule: str, initial: float, *, epochs: int) -> Schedule:
    """The learning rate as a function of the epoch.

    Args:
        schedule: See `Configuration.schedule`.
        initial: Learning rate of the first epoch.
        epochs: Length of the run.

    Example:
        >>> rate = learning_rate("cosine", 0.1, epochs=100)
        >>> [round(rate(epoch), 6) for epoch in (0, 50, 100)]
        [0.1, 0.05, 0.0]
        >>> learning_rate("cosine:0.2", 0.1, epochs=100)
        Traceback (most recent call last):
            ...
        ValueError: schedule: expected a floor of at most the learning rate, 0.1, got 'cosine:0.2'
    """
    kind, floor, every, factor = _parse_schedule(schedule)
    if kind == "constant":
        return constant(initial)
    if kind != "cosine":
        return exponential(initial, growth=factor, every=every)
    if floor > initial:
        raise ValueError(
            f"schedule: expected a floor of at most the learning rate, {initial:g}, "
            f"got {format_schedule(schedule)!r}"
        )
    return cosine(initial, floor, epochs=epochs)


def format_schedule(text: str) -> str:
    """The canonical text of a schedule.

    >>> format_schedule(" Step:30.0:.1")
    'step:30:0.1'
    >>> format_schedule("cosin")
    Traceback (most recent call last):
        ...
    ValueError: schedule: expected cosine, cosine:FLOOR, constant, exponential:FACTOR or
    step:EPOCHS:FACTOR, got 'cosin'; did you mean 'cosine'?
    """
    kind, floor, every, factor = _parse_schedule(text)
    numbers = {"cosine": [floor] * (floor > 0), "exponential": [factor], "step": [every, factor]}
    return ":".join([kind, *map(format_value, numbers.get(kind, []))])


def _parse_schedule(text: str) -> tuple[str, float, int, float]:
    form, values = parse_form(text, _FORMS, what="schedule")
    return (
        form.partition(":")[0],
        within("schedule floor", values.get("FLOOR", 0.0), 0),
        whole("schedule epochs", values.get("EPOCHS", 1), 1),
        within("schedule factor", values.get("FACTOR", 1.0), 0, open_low=True),
    )


def refuse_unknown(names: Iterable[str], beside: Iterable[str] = ()) -> None:
    """Refuse names of no setting; a hint may name one of those `beside` them, too."""
    known = [field.name for field in dataclasses.fields(Configuration)]
    for name in names:
        if name not in known:
            hint = suggest(name, [*known, *beside]) or f"; known: {', '.join(known)}"
            raise ValueError(f"unknown setting {name!r}{hint}")
