"""What is chosen for data, and the size that images are brought to."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_images import make_image, write_images

from labelproof.data import load_dataset, load_digits
from labelproof.data.dataset import Split
from labelproof.data.image_folder import load_folder
from labelproof.data.images import ImageFiles, UnreadableImageError
from labelproof.data.table import dataset_from_rows
from labelproof.fitting import recipe as recipes
from labelproof.losses import parse_loss
from labelproof.models import make_network
from labelproof.verbs.inputs import Request, bring_to_size


def test_files_and_large_images_are_looked_at_through_crops() -> None:
    files = recipes.Inputs("images", (3, 24, 24), 1000, 5, lazy=True)
    for inputs in (files, recipes.Inputs("images", (3, 300, 200), 1000, 5)):
        for fast, side in ((False, 48), (True, 224)):
            found = recipes.network_for(inputs, fast=fast)
            assert found["augmentation"] == f"resized-crop:{side},flip"
            make_network(found["network"], num_classes=5, input_shape=(3, side, side))


def write_folder(folder: Path, sizes: dict[str, tuple[int, int]]) -> Path:
    for number, (name, size) in enumerate(sizes.items()):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        make_image(number, size=size).save(folder / name)
    return folder


def test_files_of_several_sizes_and_large_ones_are_cut(tmp_path: Path) -> None:
    alike = {f"{'ab'[index % 2]}/{index}.png": (28, 28) for index in range(6)}
    small = load_folder(write_folder(tmp_path / "alike", alike))
    assert recipes.look_at(small) == recipes.Inputs("images", (3, 28, 28), 6, 2)
    for fast in (False, True):
        recipe = recipes.choose_recipe(small, fast=fast)
        assert (recipe.network, recipe.augmentation) == ("cnn4", "crop:3,flip")
    cases: list[dict[str, tuple[int, int]]] = [
        {"a/1.png": (28, 28), "b/2.png": (28, 28), "b/3.png": (28, 27)},
        {"a/1.png": (28, 20), "b/2.png": (20, 28)},
        {"a/1.png": (64, 64), "b/2.png": (64, 64)},
        {f"train/{n}/1.png": (28, 28) for n in "ab"} | {f"test/{n}/2.png": (32, 32) for n in "ab"},
    ]
    for number, sizes in enumerate(cases):
        folder = write_folder(tmp_path / str(number), sizes)
        found = recipes.network_for(recipes.look_at(load_folder(folder)))
        assert found["augmentation"] == "resized-crop:48,flip"


def test_what_is_given_is_taken_and_the_rest_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = recipes.choose_recipe(
        load_digits(), data="my digits", epochs=7, loss="gce(q=0.5)", network=None, seed=3
    )
    assert (recipe.data, recipe.epochs, recipe.seed) == ("my digits", 7, 3)
    assert (recipe.loss, recipe.network) == ("gce(q=0.5)", "cnn4(width=12)")
    assert recipe.validation == 0.1
    penalised = recipes.choose_recipe(load_digits(), l1=1e-4)
    assert (penalised.l1, penalised.weight_decay) == (1e-4, 0.0)
    colour = load_dataset((np.zeros((4, 32, 32, 3), np.uint8), [0, 1, 0, 1]))
    cases: list[tuple[dict[str, Any], float]] = [({}, 5e-5), ({"optimizer": "adamw"}, 0.0)]
    for given, l1 in (*cases, ({"epochs": 30}, 0.0), ({"l1": 1e-4}, 1e-4)):
        recipe = recipes.choose_recipe(colour, fast=True, **given)
        assert (recipe.l1, recipe.loss.startswith("3*ce+sr")) == (l1, not given)
    monkeypatch.setattr(Request, "slow", False)
    assert [Request(colour).recipe(search=search).l1 for search in (False, True)] == [5e-5, 0.0]


KINDS = {
    "rows": recipes.Inputs("rows", (30,), 500, 3),
    "grey": recipes.Inputs("images", (1, 28, 28), 60_000, 10),
    "colour": recipes.Inputs("images", (3, 32, 32), 50_000, 10),
    "many": recipes.Inputs("images", (3, 32, 32), 50_000, 100),
}


def test_the_penalty_grows_alike_over_any_number_of_epochs() -> None:
    bases = ("ce", "gce(q=0.01)", "10*nce+0.1*mae")
    for base, inputs, epochs in itertools.product(bases, KINDS.values(), (1, 7, 50, 400)):
        sparse = recipes.sparse_for(inputs)
        loss = parse_loss(recipes.complete_loss(f"{base}+sr", epochs=epochs, sparse=sparse))
        first, last = loss.weight_schedule(0), loss.weight_schedule(epochs)
        assert first < 1 / loss.p
        assert last / first == pytest.approx(sparse.growth, rel=0.01)
    one, other = (recipes.complete_loss(text, epochs=5) for text in ("ce + SR()", "ce + sr"))
    assert one == other


def test_images_get_a_penalty_only_with_time_to_learn_first() -> None:
    for name in ("colour", "many", "grey"):
        assert recipes.default_loss(KINDS[name], epochs=20) == "gce(q=0.7)"
        assert recipes.default_loss(KINDS[name], epochs=60) == "ce+sr"
    assert recipes.default_loss(KINDS["rows"], epochs=5) == "ce+sr"


def test_what_a_training_refuses_is_refused_before(tmp_path: Path) -> None:
    sizes = {f"{kind}/{side}.png": (side, side) for kind in "ab" for side in (20, 24, 30)}
    photos = load_folder(write_folder(tmp_path, sizes))
    recipes.check_feasible(photos, recipes.choose_recipe(photos))
    rows = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    table = dataset_from_rows("table", {"train": Split(rows, np.arange(40) % 2)}, "ab", None)
    for data, name, value, said in (
        (table, "augmentation", "flip", "expected none for the rows of a table, got flip"),
        (table, "network", "cnn8", "network: cnn8 is for images"),
        (table, "network", "os:path", "network: 'os:path' cannot be called"),
        (table, "noise", "human:worse", "human: expected the file of human:worse"),
        (table, "noise", "asymmetric:0.4", "confused classes are known, got 'table'"),
        (photos, "augmentation", "flip", "augmentation: expected resized-crop:SIDE for images of"),
        (photos, "augmentation", "resized-crop:2", "of at least 8 pixels a side"),
    ):
        with pytest.raises((ValueError, TypeError), match=said):
            recipes.check_feasible(data, recipes.choose_recipe(data, **{name: value}))


def test_all_images_become_squares_that_fit_in_memory(tmp_path: Path) -> None:
    sizes = [(90, 60), (60, 90), (64, 64)] * 2
    names = {f"{'ab'[index % 2]}/{index}.png": size for index, size in enumerate(sizes)}
    dataset = load_folder(folder := write_folder(tmp_path, names))
    told: list[tuple[int, int]] = []
    found = bring_to_size(dataset, 28, memory=1 << 20, progress=lambda *said: told.append(said))
    assert found.train.array.shape == (6, 3, 32, 32)
    assert found.train.array.dtype == np.uint8
    assert np.array_equal(found.train.labels, dataset.train.labels)
    assert told[-1] == (6, 6)
    assert found.mean == dataset.mean
    # Too many for memory stay files of that size.
    images = bring_to_size(dataset, 28, memory=6 * 3 * 32 * 32 - 1).train.images
    assert isinstance(images, ImageFiles)
    assert min(images[0].shape[1:]) == 32
    (folder / "a" / "2.png").write_bytes(b"gone")
    with pytest.raises(UnreadableImageError, match=r"2\.png"):
        bring_to_size(dataset, 28, memory=1 << 20)


def test_files_of_one_size_become_an_array_where_they_fit(tmp_path: Path) -> None:
    write_images(tmp_path, ["a/1.png", "a/2.png", "b/1.png"], size=(12, 9))
    dataset = load_folder(tmp_path)
    found = bring_to_size(dataset, 0, memory=3 * 3 * 9 * 12)
    assert found.train.array.shape == (3, 3, 9, 12)
    for index in range(3):
        assert np.array_equal(found.train.array[index], dataset.train.images[index])
    assert bring_to_size(dataset, 0, memory=3 * 3 * 9 * 12 - 1).train.images is dataset.train.images
