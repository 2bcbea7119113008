import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from labelproof.cli.commands import NAMES, app, load_command
from labelproof.cli.options import read_settings
from labelproof.data.dataset import Dataset, Split
from labelproof.experiments.presets import paper_configuration, paper_losses
from labelproof.losses import format_loss, parse_loss
from labelproof.training.configuration import Configuration
from labelproof.verbs.summaries import format_settings
from labelproof.verbs.train import choose_configuration


def images(height: int, width: int, *, lazy: bool = False) -> Dataset:
    array = np.zeros((2, 3, height, width), np.uint8)
    split = Split(list(array) if lazy else array, np.arange(2))
    return Dataset("own", {"train": split}, ("a", "b"), (0.5,) * 3, (0.5,) * 3)


def refuse() -> Dataset:
    raise AssertionError("nothing has to be read for this")


@settings(max_examples=10)
@given(
    data=st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip),
    rate=st.floats(1e-12, 1e12),
    epochs=st.integers(1, 10**6),
    nesterov=st.booleans(),
)
def test_toml_comes_back_as_it_was(data: str, rate: float, epochs: int, nesterov: bool) -> None:
    configuration = Configuration(data, learning_rate=rate, epochs=epochs, nesterov=nesterov)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.toml"
        path.write_text(format_settings(configuration), encoding="utf-8", newline="")
        assert Configuration.from_values(read_settings(path)) == configuration


def test_a_network_fits_the_data_unless_it_was_chosen() -> None:
    large = "resnet18-imagenet"
    for height, width, lazy, network in (
        (8, 8, False, "cnn4(width=12)"),
        (2, 40, False, large),
        (2, 20, False, "mlp"),
        (6, 30, False, "cnn4"),
        (28, 28, False, "cnn4"),
        (30, 32, False, "cnn8"),
        (33, 33, False, large),
        (64, 64, False, "resnet18"),
        (64, 64, True, "resnet18"),
    ):
        values = {"data": "./own"} | ({"network": network} if network == "resnet18" else {})
        own = images(height, width, lazy=lazy)
        chosen = choose_configuration(values, preset=None, look=lambda own=own: own)
        assert chosen.network == network
        # Files may have any size, which crops bring to one.
        cropped = network == large or lazy
        assert chosen.augmentation == ("resized-crop:224,flip" if cropped else "none")


def test_the_paper_preset_is_the_papers_run_unless_more_is_written() -> None:
    for written in ("ce+sr", "CE+SR", "Ce + sr"):
        values = {"data": "cifar100", "noise": "asymmetric:0.4", "loss": written, "seed": 3}
        chosen = choose_configuration(values, preset="paper", look=refuse)
        assert chosen == paper_configuration(
            "cifar100", "CE+SR", noise="asymmetric-reference:0.4", seed=3
        )
        published = paper_losses("cifar100", "asymmetric")["CE+SR"]
        assert chosen.loss == format_loss(parse_loss(published))
    values = {"data": "mnist", "noise": "symmetric:0.4:exact", "loss": "ce+sr(p=0.5)", "epochs": 2}
    chosen = choose_configuration(values, preset="paper", look=refuse)
    assert chosen.noise == "symmetric:0.4:exact"
    assert chosen.loss == format_loss(parse_loss("ce+sr(p=0.5)"))
    assert chosen.epochs == 2


def test_the_help_begins_with_fifteen_options_at_most() -> None:
    for name in set(NAMES) - {"data"}:
        options = [each for each in load_command(name).params if each.param_type_name == "option"]
        first = [each for each in options if getattr(each, "rich_help_panel", None) is None]
        assert len(first) <= 15, name
    shown = CliRunner().invoke(app, ["train", "--help"], env={"COLUMNS": "120"}).output
    assert len(shown.splitlines()) <= 100
