import itertools
from pathlib import Path

import numpy as np
import pytest
from made_images import make_image

from labelproof.data import load_digits
from labelproof.data.dataset import Split
from labelproof.data.image_folder import load_folder
from labelproof.data.table import dataset_from_rows
from labelproof.fitting.recipe import (
    Inputs,
    check_feasible,
    choose_recipe,
    complete_loss,
    default_loss,
    look_at,
    network_for,
    sparse_for,
)
from labelproof.losses import SparseRegularized, parse_loss
from labelproof.models import make_network


def test_files_and_large_images_are_looked_at_through_crops() -> None:
    files = Inputs("images", (3, 24, 24), 1000, 5, lazy=True)
    for inputs in (files, Inputs("images", (3, 300, 200), 1000, 5)):
        for fast, side in ((False, 48), (True, 224)):
            found = network_for(inputs, fast=fast)
            assert found["augmentation"] == f"resized-crop:{side},flip"
            make_network(found["network"], num_classes=5, input_shape=(3, side, side))


def write_folder(folder: Path, sizes: dict[str, tuple[int, int]]) -> Path:
    for number, (name, size) in enumerate(sizes.items()):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        make_image(number, size=size).save(folder / name)
    return folder


def test_files_of_several_sizes_and_large_ones_are_cut_and_small_ones_of_one_size_are_not(
    tmp_path: Path,
) -> None:
    alike = {f"{'ab'[index % 2]}/{index}.png": (28, 28) for index in range(6)}
    small = load_folder(write_folder(tmp_path / "alike", alike))
    assert look_at(small) == Inputs("images", (3, 28, 28), 6, 2)
    for fast in (False, True):
        recipe = choose_recipe(small, fast=fast)
        assert (recipe.network, recipe.augmentation) == ("cnn4", "crop:3,flip")
    cases: list[dict[str, tuple[int, int]]] = [
        {"a/1.png": (28, 28), "b/2.png": (28, 28), "b/3.png": (28, 27)},
        {"a/1.png": (28, 20), "b/2.png": (20, 28)},
        {"a/1.png": (64, 64), "b/2.png": (64, 64)},
        {f"train/{n}/1.png": (28, 28) for n in "ab"} | {f"test/{n}/2.png": (32, 32) for n in "ab"},
    ]
    for number, sizes in enumerate(cases):
        folder = write_folder(tmp_path / str(number), sizes)
        assert network_for(look_at(load_folder(folder)))["augmentation"] == "resized-crop:48,flip"


def test_what_is_given_is_taken_and_the_rest_is_chosen() -> None:
    recipe = choose_recipe(
        load_digits(), data="my digits", epochs=7, loss="gce(q=0.5)", network=None, seed=3
    )
    assert (recipe.data, recipe.epochs, recipe.loss, recipe.seed) == (
        *("my digits", 7, "gce(q=0.5)", 3),
    )
    assert recipe.network == "cnn4(width=12)"
    assert recipe.validation == 0.1
    penalised = choose_recipe(load_digits(), l1=1e-4)
    assert (penalised.l1, penalised.weight_decay) == (1e-4, 0.0)


ROWS = Inputs("rows", (30,), 500, 3)
KINDS = {
    "rows": ROWS,
    "grey": Inputs("images", (1, 28, 28), 60_000, 10),
    "colour": Inputs("images", (3, 32, 32), 50_000, 10),
    "many": Inputs("images", (3, 32, 32), 50_000, 100),
}


def test_the_penalty_grows_alike_over_any_number_of_epochs() -> None:
    bases = ("ce", "gce(q=0.01)", "10*nce+0.1*mae")
    for base, inputs, epochs in itertools.product(bases, KINDS.values(), (1, 7, 50, 400)):
        sparse = sparse_for(inputs)
        loss = parse_loss(complete_loss(f"{base}+sr", epochs=epochs, sparse=sparse))
        assert isinstance(loss, SparseRegularized)
        first, last = loss.weight_schedule(0), loss.weight_schedule(epochs)
        assert first < 1 / loss.p
        assert last / first == pytest.approx(sparse.growth, rel=0.01)
    assert complete_loss("ce + SR()", epochs=5) == complete_loss("ce + sr", epochs=5)


def test_hard_images_get_a_penalty_only_with_time_to_learn_first() -> None:
    for name in ("colour", "many"):
        assert default_loss(KINDS[name], epochs=20) == "gce(q=0.7)"
        assert default_loss(KINDS[name], epochs=60) == "ce+sr"
    for name in ("rows", "grey"):
        assert default_loss(KINDS[name], epochs=5) == "ce+sr"


# What a training would refuse is refused before.


def test_what_a_training_refuses_is_refused_before() -> None:
    rows = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    table = dataset_from_rows("table", {"train": Split(rows, np.arange(40) % 2)}, "ab", None)
    for name, value, said in (
        ("augmentation", "flip", "augmentation: expected none for the rows of a table, got flip"),
        ("network", "cnn8", "image_shape: expected"),
        ("network", "os:path", "network: expected 'os:path' to be a function or class"),
        ("noise", "human:worse", "human: expected the file of human:worse"),
        ("noise", "asymmetric:0.4", "noise: no classes of 'table' are known to be confused"),
    ):
        with pytest.raises((ValueError, TypeError), match=said):
            check_feasible(table, choose_recipe(table, **{name: value}))


def test_images_of_several_sizes_need_crops(tmp_path: Path) -> None:
    sizes = {f"{kind}/{side}.png": (side, side) for kind in "ab" for side in (20, 24, 30)}
    photos = load_folder(write_folder(tmp_path, sizes))
    check_feasible(photos, choose_recipe(photos))
    with pytest.raises(ValueError, match="augmentation: expected resized-crop:SIDE for images of"):
        check_feasible(photos, choose_recipe(photos, augmentation="flip"))
    with pytest.raises(ValueError, match="expected a height and width of at least 8"):
        check_feasible(photos, choose_recipe(photos, augmentation="resized-crop:2"))
