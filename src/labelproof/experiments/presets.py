"""The paper's settings, dataset by dataset, and its losses, as text that `parse_loss` reads.

Where the paper's text and the authors' code disagree, the value is the code's, since the published
numbers come from it, and the comment beside it says so. The code's clamp and its detached focal
factor, which are off everywhere else, are on here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from labelproof.losses import Loss, format_loss, parse_loss
from labelproof.noise import REFERENCE_CONFUSIONS, parse_noise
from labelproof.training.configuration import Configuration

__all__ = [
    "PAPER_LOSSES",
    "PAPER_ROW_TRAINING",
    "PAPER_TRAINING",
    "Training",
    "paper_configuration",
    "paper_loss",
    "paper_method",
    "paper_noise",
]


class Training(TypedDict, total=False):
    """Settings of a `Configuration` that are the paper's; what is not named is the default.

    >>> Training(epochs=1000)
    {'epochs': 1000}
    """

    network: str
    epochs: int
    batch_size: int
    learning_rate: float
    schedule: str
    nesterov: bool
    weight_decay: float
    augmentation: str


PAPER_TRAINING: Mapping[str, Training] = {
    "mnist": {
        "network": "cnn4",
        "epochs": 50,
        "learning_rate": 0.01,
        "weight_decay": 1e-3,
    },
    "cifar10": {
        "network": "cnn8",
        "epochs": 120,
        "learning_rate": 0.01,
        "weight_decay": 1e-4,
        "augmentation": "crop:4,flip",
    },
    "cifar100": {
        "network": "resnet34",
        "epochs": 200,
        "learning_rate": 0.1,
        "weight_decay": 1e-5,
        "augmentation": "crop:4,flip,rotation:20",
    },
    "webvision": {
        "network": "resnet50-imagenet",
        "epochs": 250,
        "batch_size": 512,
        "learning_rate": 0.4,
        "nesterov": True,
        "schedule": "exponential:0.97",
        "weight_decay": 3e-5,
        "augmentation": "resized-crop:224,flip,jitter:0.4:0.4:0.4:0.2",
    },
}
"""How the paper trains on each dataset; what is not named is the default: batches of 128, SGD with
momentum 0.9, a cosine to zero stepped each epoch, gradients clipped at a norm of 5."""

PAPER_ROW_TRAINING: Mapping[str, Mapping[str, Training]] = {
    # The first stage of NLNL alone. The paper does not say how it was trained; it follows APL's
    # protocol, so the settings are those of APL's public configurations: on MNIST with Nesterov's
    # momentum and a floor under the learning rate, on CIFAR with neither. For CIFAR-100 these name
    # a ResNet-50; APL's earlier script has the ResNet-34 of the paper, which is kept.
    #
    # Its epochs are those of all other rows. APL has 720 for MNIST: with these, symmetric noise .6
    # and .8 come to 97.54 and 10.28, with 50 to 96.07 and 87.93, where the paper has 96.18 and
    # 86.34, and all nine cells agree with it. APL has 1000 for CIFAR-10: with 120, .6 comes to
    # 51.59, where the paper has 50.68. On CIFAR-100, where APL has 2000, nothing is measured yet.
    #
    # There an example also weighs as much as the largest class is larger than its own. The weights
    # of `class_weight="balanced"` are in that proportion but have a mean of 1, which is less by the
    # largest class over the mean one: by 1.4 on CIFAR-10 and 1.5 on MNIST at asymmetric noise 0.4.
    # Rather than by other weights than theirs, examples are weighed by none here; with symmetric
    # noise, and on CIFAR-100, classes are nearly equal and there is little to weigh.
    "NLNL": {
        "mnist": {"nesterov": True, "schedule": "cosine:0.001"},
    },
}
"""What rows of the paper's tables are trained with in place of their dataset's settings."""

_FOCAL = "fl(gamma=0.5,detach=true)"  # the text has gamma 0.3
_GENERALIZED = "gce(q=0.7,clamp=1e-7)"


def _regularised(sparse: str, *, generalized_sparse: str | None = None, q: float) -> dict[str, str]:
    return {
        "CE+SR": f"ce+{sparse}",
        "FL+SR": f"{_FOCAL}+{sparse}",
        "GCE+SR": f"gce(q={q:g},clamp=1e-7)+{generalized_sparse or sparse}",
    }


_CIFAR100_SPARSE = "sr(tau=0.5,p=0.01,lambda0={},rho=1.02,r=1,normalize=true,clamp=1e-7)"
_WEBVISION_SPARSE = "sr(tau=0.5,p=0.01,lambda0=2,rho=1.02,r=1,normalize=true,clamp=1e-7)"

_CIFAR100 = {
    "CE": "ce",
    "FL": _FOCAL,
    "GCE": _GENERALIZED,
    "SCE": "sce(alpha=6,beta=0.1,clamp=1e-7)",
    "NLNL": "110*nl(samples=110,clamp=1e-5)",  # the code adds up what is drawn, `nl` has the mean
    "APL": "10*nce+mae",  # the text has beta 0.1
    "PHuber-CE": "phuber(tau=10)",
    "MAE": "mae",
    "NCE+RCE": "10*nce+0.1*rce(clamp=1e-7)",
}

PAPER_LOSSES: Mapping[str, Mapping[str, str]] = {
    "mnist": {
        "CE": "ce",
        "FL": _FOCAL,
        "GCE": _GENERALIZED,
        "SCE": "sce(alpha=0.01,beta=1,clamp=1e-7)",
        "NLNL": "nl(clamp=1e-5)",
        "APL": "nce+100*mae",  # APL's own configuration has 10
        "PHuber-CE": "phuber(tau=10)",
        "MAE": "mae",
        "NCE+RCE": "nce+100*rce(clamp=1e-7)",
        **_regularised(
            "sr(tau=0.1,p=0.1,lambda0=4,rho=2,r=5,normalize=false,clamp=1e-7)",
            generalized_sparse="sr(tau=0.5,p=0.1,lambda0=3,rho=2,r=5,normalize=false,clamp=1e-7)",
            q=0.01,
        ),
    },
    "cifar10": {
        "CE": "ce",
        "FL": _FOCAL,
        "GCE": _GENERALIZED,
        "SCE": "sce(alpha=0.1,beta=1,clamp=1e-7)",
        "NLNL": "nl(clamp=1e-5)",
        # 1 - u_y. With 2 (1 - u_y), as the authors' absolute error alone has it, one seed gives
        # 77.45 and 49.78 at symmetric .6 and .8; the paper has 76.02 and 46.69, this 76.29, 47.12.
        "APL": "nce+mae",
        "PHuber-CE": "phuber(tau=2)",
        "MAE": "mae",
        "NCE+RCE": "nce+rce(clamp=1e-7)",
        # The text has lambda0 1.1; the l2-normalisation is the noise script's.
        **_regularised(
            "sr(tau=0.5,p=0.1,lambda0=1.2,rho=1.03,r=1,normalize=true,clamp=1e-7)", q=0.01
        ),
    },
    # The text has lambda0 10 for symmetric and 4 for asymmetric noise; the authors say in their
    # tracker that it is the other way round.
    "cifar100-symmetric": {**_CIFAR100, **_regularised(_CIFAR100_SPARSE.format(4), q=0.001)},
    "cifar100-asymmetric": {**_CIFAR100, **_regularised(_CIFAR100_SPARSE.format(10), q=0.001)},
    "webvision": {
        "CE": "ce",
        "FL": _FOCAL,
        "GCE": _GENERALIZED,
        "SCE": "sce(alpha=10,beta=1,clamp=1e-7)",
        "APL": "50*nce+0.1*mae",
        "CE+SR": f"ce+{_WEBVISION_SPARSE}",
        "FL+SR": f"{_FOCAL}+{_WEBVISION_SPARSE}",
    },
}
"""For each setting of the paper, its methods by the names its tables give them."""


def paper_loss(setting: str, method: str) -> Loss:
    """The loss of one row of the paper's tables.

    Args:
        setting: `mnist`, `cifar10`, `cifar100-symmetric`, `cifar100-asymmetric` or `webvision`.
        method: As the tables name it, such as `"CE+SR"`.

    Example:
        >>> paper_loss("cifar10", "GCE")
        GeneralizedCrossEntropy(q=0.7, clamp=1e-07)
    """
    for name, known in (("setting", PAPER_LOSSES), ("method", PAPER_LOSSES.get(setting, {}))):
        given = {"setting": setting, "method": method}[name]
        if given not in known:
            raise ValueError(f"{name}: expected one of {', '.join(known)}, got {given!r}")
    return parse_loss(PAPER_LOSSES[setting][method])


def paper_noise(dataset: str, kind: str, rate: float) -> str:
    """Noise as the authors' code puts it on a dataset, as text.

    On CIFAR symmetric noise has exact counts in each class, and so has asymmetric noise on
    CIFAR-10. That one flips one class after the other, on labels that earlier flips have changed
    already: the dogs that become cats are drawn from all labels that say dog by then, cats of a
    moment ago among them, so that 18.4% of the labels are wrong at a rate of 0.4 where the text's
    exchange of cats and dogs has 20%. Asymmetric noise on CIFAR-100 is between neighbours of the
    alphabet, which are not the super-classes that the text names.

    >>> paper_noise("cifar10", "symmetric", 0.6)
    'symmetric:0.6:exact'
    >>> paper_noise("cifar10", "asymmetric", 0.4)
    'asymmetric-reference:0.4:exact'
    >>> paper_noise("mnist", "asymmetric", 0.4)
    'asymmetric:0.4'
    """
    if not rate:
        return "none"
    if kind == "asymmetric" and dataset in REFERENCE_CONFUSIONS:
        kind = "asymmetric-reference"
    counted = dataset == "cifar10" or (dataset == "cifar100" and kind == "symmetric")
    exact = ":exact" if counted else ""
    return str(parse_noise(f"{kind}:{rate}{exact}"))


def paper_configuration(
    dataset: str, method: str, *, noise: str = "none", seed: int = 1, **changes: Any
) -> Configuration:
    """One run of the paper.

    Args:
        dataset: `mnist`, `cifar10`, `cifar100` or `webvision`.
        method: As the tables name it, such as `"CE+SR"`, in any case; or a loss as text. A text
            that is also a name, such as `ce+sr`, is the table's. A name brings the row's own
            settings with it, such as NLNL's schedule on MNIST, which a loss as text does not.
        noise: As text; `paper_noise` writes the paper's.
        seed: Of the run.
        **changes: Settings that differ from the paper's.

    Example:
        >>> paper_configuration("cifar100", "CE+SR", noise="asymmetric-reference:0.4").loss
        'ce+sr(tau=0.5,p=0.01,lambda0=10,rho=1.02,r=1,normalize=true,clamp=1e-7)'
        >>> paper_configuration("mnist", "NLNL").schedule
        'cosine:0.001'
    """
    if dataset not in PAPER_TRAINING:
        raise ValueError(
            f"data: the paper has settings for {', '.join(PAPER_TRAINING)}, got {dataset!r}"
        )
    setting = _setting(dataset, noise)
    rows = {name.casefold(): name for name in PAPER_LOSSES[setting]}
    row = rows.get("".join(method.casefold().split()), "")
    values: dict[str, Any] = {
        **PAPER_TRAINING[dataset],
        **PAPER_ROW_TRAINING.get(row, {}).get(dataset, {}),
        "noise": noise,
        "loss": PAPER_LOSSES[setting].get(row, method),
        "seed": seed,
        **changes,
    }
    return Configuration(dataset, **values)


def paper_method(configuration: Configuration) -> str:
    """What the paper's tables call a run: the method with its loss, or else the loss itself.

    >>> paper_method(paper_configuration("mnist", "gce+sr", noise="symmetric:0.8"))
    'GCE+SR'
    >>> paper_method(Configuration("mnist", loss="gce(q=0.5)"))
    'gce(q=0.5)'
    """
    if configuration.algorithm.startswith("co-teaching"):
        return "Co-teaching"
    named = PAPER_LOSSES.get(_setting(configuration.data, configuration.noise), {})
    for method, loss in named.items():
        if format_loss(parse_loss(loss)) == configuration.loss:
            return method
    return configuration.loss


def _setting(dataset: str, noise: str) -> str:
    if dataset != "cifar100":
        return dataset
    return f"cifar100-{'asymmetric' if noise.startswith('asymmetric') else 'symmetric'}"
