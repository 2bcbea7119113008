from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_runs import small_digits

from labelproof.data.dataset import Dataset, Split
from labelproof.seeds import derive_seed
from labelproof.training.augmentation import (
    Augmentation,
    parse_augmentation,
)
from labelproof.training.batches import (
    EpochPlan,
    Labels,
    ResidentFeed,
    ResidentInputs,
    plan_epoch,
)

steady = settings(deadline=None, derandomize=True, max_examples=60)
CPU = torch.device("cpu")
AUGMENTED = parse_augmentation("crop:2,flip")


def plan(used: np.ndarray, epoch: int = 0, *, batch_size: int = 8, **options: int) -> EpochPlan:
    options = {"seed": 1, **options}
    return plan_epoch(used, epoch, batch_size=batch_size, augmentation=AUGMENTED, **options)


@steady
@given(st.sets(st.integers(0, 500), min_size=2, max_size=60), st.integers(2, 20), st.integers(0, 9))
def test_every_example_comes_once_an_epoch(chosen: set[int], batch_size: int, epoch: int) -> None:
    used = np.array(sorted(chosen))
    found = plan(used, epoch, batch_size=batch_size)
    sizes = [share.local for share in found.steps]
    left_over = len(used) % batch_size == 1
    counts = Counter(found.order.tolist())
    assert set(counts) <= chosen
    assert set(counts.values()) == {1}
    assert len(found.order) == len(found.draws) == sum(sizes) == len(used) - left_over
    assert all(size == batch_size for size in sizes[:-1])
    assert 2 <= sizes[-1] <= batch_size
    assert all(share.local == share.whole for share in found.steps)


def test_epochs_and_seeds_have_orders_and_draws_of_their_own() -> None:
    used = np.arange(50)
    plans = [plan(used, epoch, seed=seed) for epoch in range(4) for seed in (1, 2)]
    assert len({tuple(each.order.tolist()) for each in plans}) == 8
    assert len({tuple(each.draws.flatten().tolist()) for each in plans}) == 8
    again = plan(used, 3, seed=2)
    assert torch.equal(again.order, plans[-1].order)
    assert torch.equal(again.draws, plans[-1].draws)
    used = np.arange(17)  # the example that is left over is not always the same
    missing = {(set(range(17)) - set(plan(used, epoch).order.tolist())).pop() for epoch in range(9)}
    assert len(missing) > 3


@steady
@given(st.integers(6, 70), st.integers(5, 20), st.sampled_from([2, 3, 5]), st.integers(0, 3))
def test_the_shares_of_processes_are_the_batches_of_one(
    count: int, batch_size: int, world_size: int, epoch: int
) -> None:
    used = np.arange(count) * 3
    alone = plan(used, epoch, batch_size=batch_size)
    shares = [
        plan(used, epoch, batch_size=batch_size, rank=rank, world_size=world_size)
        for rank in range(world_size)
    ]
    starts = [0] * world_size
    position = 0
    for number, (_, whole) in enumerate(alone.steps):
        if whole < world_size:  # someone would have nothing to do, so the others drop it too
            assert number == len(alone.steps) - 1
            assert all(len(share.steps) == number for share in shares)
            break
        order, draws = [], []
        for rank, share in enumerate(shares):
            local = share.steps[number].local
            assert share.steps[number].whole == whole
            assert whole // world_size <= local <= -(-whole // world_size)
            order.append(share.order[starts[rank] : starts[rank] + local])
            draws.append(share.draws[starts[rank] : starts[rank] + local])
            starts[rank] += local
        assert torch.equal(torch.cat(order), alone.order[position : position + whole])
        assert torch.equal(torch.cat(draws), alone.draws[position : position + whole])
        position += whole


def feed_of(images: ResidentInputs, augmentation: Augmentation) -> ResidentFeed:
    given = torch.arange(200) % 10
    labels = Labels(given, given + 100)
    return ResidentFeed(images, augmentation, labels)


@pytest.mark.parametrize("augmentation", [Augmentation(), AUGMENTED])
@pytest.mark.parametrize("start", [0, 3])
def test_a_feed_gives_the_planned_examples_with_their_draws(
    augmentation: Augmentation, start: int
) -> None:
    dataset = small_digits()
    images = ResidentInputs(dataset, CPU)
    used = np.arange(3, 200, 5)
    feed = feed_of(images, augmentation)
    found = plan_epoch(used, 1, seed=1, batch_size=8, augmentation=augmentation)
    feed.load(found, start=start)
    position = 8 * start
    for share in found.steps[start:]:
        feed.stage()
        batch = feed.fetch(share.local)
        rows = slice(position, position + share.local)
        assert torch.equal(batch.indices, found.order[rows])
        assert torch.equal(batch.target, feed.labels.given[found.order[rows]])
        assert torch.equal(batch.clean, batch.target + 100)
        for row, index in enumerate(batch.indices.tolist()):
            pixels = torch.from_numpy(dataset.train.array[index]).float()
            if augmentation.columns:
                down, right, flipped = found.draws[position + row].tolist()
                framed = torch.nn.functional.pad(pixels, (2, 2, 2, 2))
                top, left = 2 + int(down), 2 + int(right)
                moved = framed[:, top : top + 8, left : left + 8]
                pixels = moved.flip(2) if flipped else moved
            expected = (pixels / 255 - dataset.mean[0]) / dataset.std[0]
            torch.testing.assert_close(batch.inputs[row], expected, rtol=1e-5, atol=1e-5)
        position += share.local
    assert int(feed.state["position"]) == len(found.order)


def table(count: int = 90, width: int = 4) -> Dataset:
    draws = np.random.default_rng(0)
    rows = draws.normal(3, 2, (count, width)).astype(np.float32)
    labels = draws.integers(0, 3, count)
    mean, std = rows.mean(axis=0), rows.std(axis=0)
    return Dataset(
        "table",
        {"train": Split(rows, labels)},
        ("a", "b", "c"),
        tuple(mean.tolist()),
        tuple(std.tolist()),
    )


def test_rows_come_in_the_networks_numbers_with_their_labels_and_weights() -> None:
    rows = ResidentInputs(table(), CPU)
    given = torch.arange(90) % 3
    labels = Labels(given, given, torch.linspace(0, 2, 90))
    feed = ResidentFeed(rows, Augmentation(), labels, torch.bfloat16)
    feed.load(plan_epoch(np.arange(90), 0, seed=1, batch_size=8, augmentation=Augmentation()))
    fetched = feed.fetch(8)
    assert fetched.inputs.dtype == torch.bfloat16
    assert torch.equal(fetched.inputs, rows.train[fetched.indices].bfloat16())
    assert fetched.clean is fetched.target
    assert fetched.weight is not None
    assert torch.equal(fetched.weight, torch.linspace(0, 2, 90)[fetched.indices])
    with pytest.raises(ValueError, match="augmentation: expected none for the rows of a table"):
        ResidentFeed(rows, parse_augmentation("flip"), labels)


def test_seeds_purposes_and_epochs_do_not_meet() -> None:
    derived = {
        derive_seed(seed, purpose, epoch)
        for seed in range(20)
        for purpose in ("order", "augmentation", "loss", "network 0", "network 1", "")
        for epoch in range(50)
    }
    assert len(derived) == 20 * 6 * 50
    # Another one would make every record of an earlier version a record of other draws.
    assert derive_seed(1, "order", 3) == 6344472847082523721
