from __future__ import annotations

from pathlib import Path

import pytest
from made_images import make_image

from labelproof.data import load_digits
from labelproof.data.image_folder import load_folder
from labelproof.fitting.recipe import (
    Inputs,
    choose_recipe,
    complete_loss,
    default_loss,
    look_at,
    network_for,
    sparse_for,
)
from labelproof.losses import SparseRegularized, parse_loss
from labelproof.models import make_network


@pytest.mark.parametrize("fast", [False, True])
def test_files_and_large_images_are_looked_at_through_crops(fast: bool) -> None:
    for inputs in (
        Inputs("images", (3, 24, 24), 1000, 5, lazy=True),
        Inputs("images", (3, 300, 200), 1000, 5),
    ):
        found = network_for(inputs, fast=fast)
        side = 224 if fast else 48
        assert found["augmentation"] == f"resized-crop:{side},flip"
        make_network(found["network"], num_classes=5, input_shape=(3, side, side))


def write_folder(folder: Path, sizes: dict[str, tuple[int, int]]) -> Path:
    for number, (name, size) in enumerate(sizes.items()):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        make_image(number, size=size).save(folder / name)
    return folder


def test_small_files_of_one_size_are_treated_as_an_array_of_them(tmp_path: Path) -> None:
    write_folder(tmp_path, {f"{'ab'[index % 2]}/{index}.png": (28, 28) for index in range(6)})
    recipe = choose_recipe(load_folder(tmp_path))
    assert (recipe.network, recipe.augmentation) == ("cnn4", "crop:3,flip")
    array = Inputs("images", (3, 28, 28), 6, 2)
    assert look_at(load_folder(tmp_path)) == array
    assert choose_recipe(load_folder(tmp_path), fast=True).network == "cnn4"


@pytest.mark.parametrize(
    "sizes",
    [
        {"a/1.png": (28, 28), "b/2.png": (28, 28), "b/3.png": (28, 27)},
        {"a/1.png": (28, 20), "b/2.png": (20, 28)},
        {"a/1.png": (64, 64), "b/2.png": (64, 64)},
        {
            "train/a/1.png": (28, 28),
            "train/b/2.png": (28, 28),
            "test/a/3.png": (32, 32),
            "test/b/4.png": (32, 32),
        },
    ],
)
def test_files_of_several_sizes_and_large_ones_are_cut(
    sizes: dict[str, tuple[int, int]], tmp_path: Path
) -> None:
    found = network_for(look_at(load_folder(write_folder(tmp_path, sizes))))
    assert found["augmentation"] == "resized-crop:48,flip"


def test_what_is_given_is_taken_and_the_rest_is_chosen() -> None:
    recipe = choose_recipe(
        load_digits(), data="my digits", epochs=7, loss="gce(q=0.5)", network=None, seed=3
    )
    assert (recipe.data, recipe.epochs, recipe.loss, recipe.seed) == (
        *("my digits", 7, "gce(q=0.5)", 3),
    )
    assert recipe.network == "cnn4(width=12)"
    assert recipe.validation == 0.1


ROWS = Inputs("rows", (30,), 500, 3)
KINDS = {
    "rows": ROWS,
    "grey": Inputs("images", (1, 28, 28), 60_000, 10),
    "colour": Inputs("images", (3, 32, 32), 50_000, 10),
    "many": Inputs("images", (3, 32, 32), 50_000, 100),
}


@pytest.mark.parametrize("epochs", [1, 7, 50, 400])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("base", ["ce", "gce(q=0.01)", "10*nce+0.1*mae"])
def test_the_penalty_grows_alike_over_any_number_of_epochs(
    base: str, kind: str, epochs: int
) -> None:
    sparse = sparse_for(KINDS[kind])
    loss = parse_loss(complete_loss(f"{base}+sr", epochs=epochs, sparse=sparse))
    assert isinstance(loss, SparseRegularized)
    first, last = loss.weight_schedule(0), loss.weight_schedule(epochs)
    assert first < 1 / loss.p
    assert last / first == pytest.approx(sparse.growth, rel=0.01)


def test_hard_images_get_a_penalty_only_with_time_to_learn_first() -> None:
    for name in ("colour", "many"):
        assert default_loss(KINDS[name], epochs=20) == "gce(q=0.7)"
        assert default_loss(KINDS[name], epochs=60) == "ce+sr"
    for name in ("rows", "grey"):
        assert default_loss(KINDS[name], epochs=5) == "ce+sr"


def test_small_sets_are_seen_often_and_large_ones_end() -> None:
    few = choose_recipe(load_digits())
    assert few.epochs * len(load_digits().train) >= 100_000
    assert look_at(load_digits()).kind == "images"
