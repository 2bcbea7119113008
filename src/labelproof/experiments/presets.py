"""Published settings by dataset and method, from `paper.ini`, and published numbers."""

from __future__ import annotations

import configparser
import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from labelproof.losses import format_loss, parse_loss
from labelproof.noise import REFERENCE_CONFUSIONS, parse_noise
from labelproof.training.configuration import Configuration

DATASETS = ("mnist", "cifar10", "cifar100", "webvision")


def paper_losses(dataset: str, noise: str = "none") -> dict[str, str]:
    """The loss of every method on a dataset with some noise, by its name in the tables.

    >>> paper_losses("cifar10", "symmetric:0.6")["JS"]
    'js(pi=0.9)'
    """
    return _settings("losses", dataset, noise)


def paper_algorithms(dataset: str, noise: str = "none") -> dict[str, str]:
    """The algorithm of every method that trains cross entropy with one, by its name."""
    return _settings("algorithms", dataset, noise)


def paper_training(dataset: str, noise: str = "none", row: str = "") -> dict[str, Any]:
    """How the paper trains on a dataset: settings of a `Configuration`; others are the defaults.

    `cifar-n` is how the publishers of CIFAR-10N and CIFAR-100N train. With a `row`, the settings of
    that method with some noise that replace those of its dataset.
    """
    return _settings("training", dataset, noise, row)


def _settings(what: str, dataset: str, noise: str = "none", row: str = "") -> dict[str, Any]:
    """The settings for a dataset, replaced by those for its kind of noise, then for its rate."""
    kind, _, rest = noise.partition(":")
    kind = kind.removesuffix("-reference")
    places = (dataset, f"{dataset} {kind}", f"{dataset} {kind}:{rest.partition(':')[0]}")
    sections = [_sections().get((f"{what} {place}", row), {}) for place in places]
    return {name: value for section in sections for name, value in section.items()}


@cache
def _sections() -> dict[tuple[str, str], dict[str, Any]]:
    """The sections of `paper.ini` by name, and by row if they are for some rows."""
    parser = configparser.ConfigParser(delimiters="=", comment_prefixes="#", interpolation=None)
    parser.optionxform = str  # pyright: ignore[reportAttributeAccessIssue]
    parser.read_string(_resource("paper.ini"))
    return {
        (place, row): {name: _value(text) for name, text in parser[section].items()}
        for section in parser.sections()
        for place, _, rows in [section.partition(": ")]
        for row in rows.split(", ")
    }


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def paper_noise(dataset: str, kind: str, rate: float) -> str:
    """The noise that the authors' code applies to a dataset, as text.

    On CIFAR symmetric noise has exact counts in each class, and so has asymmetric noise on
    CIFAR-10. The latter flips one class after another, on labels that earlier flips have already
    changed: dogs that become cats are drawn from all labels that are dog by then, former cats
    included. So 18.4% of the labels are wrong at a rate of 0.4, where swapping cats and dogs, as in
    the paper's text, gives 20%. Asymmetric noise on CIFAR-100 is between neighbours in the
    alphabet, not within the super-classes that the text names.

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
    dataset: str,
    method: str,
    *,
    noise: str = "none",
    seed: int = 1,
    training: Mapping[str, Any] | None = None,
    **changes: Any,
) -> Configuration:
    """One run of the paper, or of a method published later in the paper's setting.

    Args:
        dataset: `mnist`, `cifar10`, `cifar100` or `webvision`.
        method: As the tables name it, such as `"CE+SR"`, in any case; or a loss as text. A text
            that is also a name, such as `ce+sr`, is the name. A name includes the row's own
            settings, such as NLNL's schedule on MNIST, a loss as text does not.
        noise: As text; `paper_noise` returns the paper's.
        seed: Random seed of the run.
        training: Settings that replace the dataset's; those of the row take precedence.
        **changes: Settings that replace all others.

    Example:
        >>> paper_configuration("cifar100", "CE+SR", noise="asymmetric-reference:0.4").loss
        'ce+sr(tau=0.5,p=0.01,lambda0=10,rho=1.02,r=1,normalize=true,clamp=1e-7)'
        >>> paper_configuration("mnist", "NLNL").schedule
        'cosine:0.001'
        >>> paper_configuration("cifar10", "ELR", noise="human:worse").algorithm
        'elr(beta=0.7,lambda=3)'
    """
    if dataset not in DATASETS:
        raise ValueError(f"data: the paper has settings for {', '.join(DATASETS)}, got {dataset!r}")
    losses, algorithms = paper_losses(dataset, noise), paper_algorithms(dataset, noise)
    rows = {name.casefold(): name for name in (*losses, *algorithms)}
    row = rows.get("".join(method.casefold().split()), "")
    values = {
        **paper_training(dataset),
        **(training or {}),
        **(paper_training(dataset, noise, row) if row else {}),
        "noise": noise,
        "loss": "ce" if row in algorithms else losses.get(row, method),
        "algorithm": algorithms.get(row, "supervised"),
        "seed": seed,
        **changes,
    }
    return Configuration(dataset, **values)


def paper_method(configuration: Configuration) -> str:
    """The name of a run's method in the paper's tables, or else its loss.

    >>> paper_method(paper_configuration("mnist", "gce+sr", noise="symmetric:0.8"))
    'GCE+SR'
    >>> paper_method(Configuration("mnist", loss="gce(q=0.5)"))
    'gce(q=0.5)'
    """
    data, noise = configuration.data, configuration.noise
    name = configuration.algorithm.partition("(")[0]
    for method in paper_algorithms(data, noise):
        if method.casefold() == name:
            return method
    for method, loss in paper_losses(data, noise).items():
        # CE+SR and CE+SR+l1 differ only in the penalty on the weights.
        l1 = paper_training(data, noise, method).get("l1", 0.0)
        if format_loss(parse_loss(loss)) == configuration.loss and l1 == configuration.l1:
            return method
    return configuration.loss


class Published(NamedTuple):
    """A published result."""

    mean: float
    """Test accuracy in percent: of the last epoch, and for human labels of the best one."""
    std: float | None
    """Standard deviation over three runs, if published."""


def published(table: str, dataset: str) -> dict[str, dict[str, Published]]:
    """One table for one dataset: for each method its cells, in the published order.

    The table `beyond` has the results of later papers beside the paper's own rows.

    Args:
        table: `symmetric`, `asymmetric`, `comparison`, `imbalance`, `webvision`, `beyond` or
            `human`.
        dataset: `mnist`, `cifar10`, `cifar100` or `webvision`.

    Example:
        >>> published("symmetric", "cifar10")["CE+SR"]["0.6"]
        Published(mean=78.18, std=0.36)
        >>> published("beyond", "cifar10")["CE+SR"]["sym-0.6"]
        Published(mean=78.18, std=0.36)
    """
    rows = json.loads(_resource("paper.json")).get(table, {}).get(dataset, {})
    results = {
        method: {column: Published(*cell) for column, cell in cells.items()}
        for method, cells in rows.items()
    }
    kinds = {"symmetric": "sym", "asymmetric": "asym"} if table == "beyond" else {}
    for kind, short in kinds.items():
        for method, cells in published(kind, dataset).items():
            own = {f"{short}-{rate}" if float(rate) else "clean": cells[rate] for rate in cells}
            results.setdefault(method, {}).update(own)
    return results


@cache
def _resource(name: str) -> str:
    return resources.files("labelproof.experiments").joinpath(name).read_text("utf-8")
