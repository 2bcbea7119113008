from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_runs import small, small_digits

from labelproof.data.dataset import Dataset, Split
from labelproof.seeds import derive_seed
from labelproof.training import Configuration, Examples
from labelproof.training.batches import EpochPlan, ResidentInputs, plan_epoch

steady = settings(deadline=None, derandomize=True, max_examples=30)
CPU = torch.device("cpu")


def configured(augmentation: str = "crop:2,flip", **changes: Any) -> Configuration:
    return small(augmentation=augmentation, **{"batch_size": 8, "precision": "float32", **changes})


def plan(used: np.ndarray, epoch: int = 0, processes: Any = None, **changes: int) -> EpochPlan:
    return plan_epoch(used, epoch, configured(**changes), **processes or {})


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
    # Another seed would make every record of an earlier version a record of other draws.
    assert derive_seed(1, "order", 3) == 6344472847082523721
    assert derive_seed(1, "order", 3) != derive_seed(1, "loss", 3)


@steady
@given(st.integers(6, 70), st.integers(5, 20), st.sampled_from([2, 3, 5]), st.integers(0, 3))
def test_the_shares_of_processes_are_the_batches_of_one(count, batch_size, world_size, epoch):
    used = np.arange(count) * 3
    alone = plan(used, epoch, batch_size=batch_size)
    shares = [
        plan(used, epoch, {"rank": rank, "world_size": world_size}, batch_size=batch_size)
        for rank in range(world_size)
    ]
    wholes = [whole for _, whole in alone.steps]
    if wholes[-1] < world_size:  # someone would have nothing to do, so the others drop it too
        wholes.pop()
    for name in ("order", "draws"):
        parts = []
        for share in shares:
            assert [each.whole for each in share.steps] == wholes
            parts.append(getattr(share, name).split([each.local for each in share.steps]))
        together = torch.cat([torch.cat(step) for step in zip(*parts, strict=True)])
        assert torch.equal(together, getattr(alone, name)[: sum(wholes)])
    for step, whole in enumerate(wholes):
        sizes = [share.steps[step].local for share in shares]
        assert max(sizes) - min(sizes) <= 1
        assert sum(sizes) == whole


@pytest.mark.parametrize(("augmentation", "start"), [("none", 3), ("crop:2,flip", 0)])
def test_a_feed_gives_the_planned_examples(augmentation: str, start: int) -> None:
    dataset = small_digits()
    used, given = np.arange(3, 200, 5), np.arange(200) % 10
    examples = Examples(dataset, used, given, given + 100, 1.0)
    feed = ResidentInputs(dataset, CPU).feed(examples, configured(augmentation))
    found = plan_epoch(used, 1, configured(augmentation))
    feed.load(found, start=start)
    position = 8 * start
    for share in found.steps[start:]:
        feed.stage()
        batch = feed.fetch(share.local)
        rows = slice(position, position + share.local)
        assert torch.equal(batch.indices, found.order[rows])
        assert torch.equal(batch.target, feed.given[found.order[rows]])
        assert torch.equal(batch.clean, batch.target + 100)
        for row, index in enumerate(batch.indices.tolist()):
            pixels = torch.from_numpy(dataset.train.array[index]).float()
            if augmentation != "none":
                down, right, flipped = found.draws[position + row].tolist()
                framed = torch.nn.functional.pad(pixels, (2, 2, 2, 2))
                top, left = 2 + int(down), 2 + int(right)
                moved = framed[:, top : top + 8, left : left + 8]
                pixels = moved.flip(2) if flipped else moved
            expected = (pixels / 255 - dataset.mean[0]) / dataset.std[0]
            torch.testing.assert_close(batch.inputs[row], expected, rtol=1e-5, atol=1e-5)
        position += share.local
    assert int(feed.state["position"]) == len(found.order)


def test_rows_come_in_the_networks_numbers_with_their_labels_and_weights() -> None:
    table = np.random.default_rng(0).normal(3, 2, (90, 4)).astype(np.float32)
    split = {"train": Split(table, np.arange(90) % 3)}
    scale = (tuple(each.tolist()) for each in (table.mean(axis=0), table.std(axis=0)))
    dataset, used = Dataset("table", split, ("a", "b", "c"), *scale), np.arange(90)
    weight = torch.linspace(0, 2, 90)
    examples = Examples(dataset, used, used % 3, None, 0.0, weight=weight.numpy())
    rows = ResidentInputs(dataset, CPU)
    feed = rows.feed(examples, configured("none", precision="bf16"))
    feed.load(plan_epoch(used, 0, configured("none")))
    fetched = feed.fetch(8)
    assert fetched.inputs.dtype == torch.bfloat16
    assert torch.equal(fetched.inputs, rows.train[fetched.indices].bfloat16())
    assert fetched.clean is fetched.target
    assert torch.equal(fetched.weight, weight[fetched.indices])
