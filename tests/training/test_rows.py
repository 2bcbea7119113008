from __future__ import annotations

import numpy as np
import pytest
import torch

from labelproof.data.dataset import Dataset, Split
from labelproof.training import Configuration, Examples, Execution
from labelproof.training.augmentation import Augmentation, parse_augmentation
from labelproof.training.batches import (
    EpochPlan,
    Fetched,
    Labels,
    ResidentFeed,
    ResidentRows,
    RowFeed,
    Share,
    plan_epoch,
)
from labelproof.training.trainer import Trainer

CPU = torch.device("cpu")
NONE = Augmentation()


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


def labels(count: int = 90, *, clean: bool = True, weight: bool = True) -> Labels:
    given = torch.arange(count) % 3
    return Labels(
        given,
        (given + 1) % 3 if clean else given,
        torch.linspace(0, 2, count) if weight else None,
    )


def plan(batch_size: int, *, rank: int = 0, world_size: int = 1) -> EpochPlan:
    return plan_epoch(
        np.arange(90)[::-1].copy(),
        0,
        seed=1,
        batch_size=batch_size,
        augmentation=NONE,
        rank=rank,
        world_size=world_size,
    )


def same(ours: Fetched, theirs: Fetched) -> bool:
    return all(
        (a is None and b is None) or (a is not None and b is not None and torch.equal(a, b))
        for a, b in zip(ours, theirs, strict=True)
    )


@pytest.mark.parametrize("ahead", [1, 20, 33, 1000])
@pytest.mark.parametrize("known", [labels(), labels(clean=False, weight=False)])
@pytest.mark.parametrize("start", [0, 3])
def test_batches_are_those_that_are_gathered_one_by_one(
    ahead: int, known: Labels, start: int
) -> None:
    rows = ResidentRows(table(), CPU)
    ours = RowFeed(rows, NONE, 90, labels=known, ahead=ahead)
    theirs = ResidentFeed(rows, NONE, 90, labels=known)
    # Two processes share batches of 25, so that sizes alternate; the next epoch is another.
    for found in (plan(8), plan(25, rank=1, world_size=2)):
        for feed in (ours, theirs):
            feed.load(found, start=start)
        for share in found.steps[start:]:
            assert same(ours.fetch(share.local), theirs.fetch(share.local))
            assert torch.equal(ours.state["position"], theirs.state["position"])


def test_labels_that_no_one_corrected_are_the_given_ones() -> None:
    feed = RowFeed(ResidentRows(table(), CPU), NONE, 90, labels=labels(clean=False), ahead=50)
    feed.load(plan(8))
    fetched = feed.fetch(8)
    assert fetched.clean is fetched.target


def test_a_position_that_was_restored_is_where_it_goes_on() -> None:
    rows = ResidentRows(table(), CPU)
    feed = RowFeed(rows, NONE, 90, labels=labels(), ahead=40)
    found = plan(8)
    feed.load(found)
    for _ in range(3):
        feed.fetch(8)
    for position in (8, 64, 0):
        feed.state["position"].fill_(position)
        assert torch.equal(feed.fetch(8).indices, found.order[position : position + 8])


def test_on_the_cpu_rows_are_gathered_ahead() -> None:
    rows = ResidentRows(table(), CPU)
    feed = rows.make_feed(NONE, 90, labels=labels(), dtype=torch.bfloat16, batch_size=8)
    assert isinstance(feed, RowFeed)
    feed.load(plan(8))
    fetched = feed.fetch(8)
    assert fetched.inputs.dtype == torch.bfloat16
    assert torch.equal(fetched.inputs, rows.train[fetched.indices].bfloat16())
    with pytest.raises(ValueError, match="augmentation: expected none for the rows of a table"):
        rows.make_feed(
            parse_augmentation("flip"), 90, labels=labels(), dtype=torch.float32, batch_size=8
        )


def test_a_compiled_fetch_is_the_same_and_moves_the_position() -> None:
    rows = ResidentRows(table(), CPU)
    feed = RowFeed(rows, NONE, 90, labels=labels(), ahead=40)
    found = plan(8)
    feed.load(found)
    torch.compiler.reset()
    fetch = torch.compile(lambda: feed.fetch(8).indices, backend="aot_eager", fullgraph=True)
    got = [fetch(), fetch(), feed.fetch(8).indices, feed.fetch(8).indices]
    assert torch.equal(torch.cat(got), found.order[:32])
    assert int(feed.state["position"]) == 32
    torch.compiler.reset()


@pytest.mark.parametrize("loss", ["ce", "ce+sr"])
@pytest.mark.parametrize("stop", [1, 5, 11])
def test_a_run_that_goes_on_from_within_an_epoch_comes_to_the_same_bytes(
    loss: str, stop: int
) -> None:
    dataset = table()
    configuration = Configuration(
        "table",
        loss=loss,
        network="mlp(hidden=8,depth=1)",
        epochs=2,
        batch_size=8,
        optimizer="adamw",
        learning_rate=0.01,
    )

    def start() -> Trainer:
        given = dataset.train.labels
        examples = Examples(dataset, np.arange(90), given, np.roll(given, 1), 0.5)
        return Trainer(configuration, examples, ResidentRows(dataset, CPU), Execution(CPU))

    def finish(run: Trainer) -> list[dict[str, float]]:
        found = []
        while not run.finished:
            run.begin()
            while not run.advance():
                pass
            found.append(run.collect(run.end()))
        return found

    whole, first, second = start(), start(), start()
    first.begin()
    for _ in range(stop):
        first.advance()
    second.restore(first.checkpoint())
    assert finish(second) == finish(whole)
    assert torch.equal(second.optimizers[0].flat.values, whole.optimizers[0].flat.values)


def test_shares_are_of_the_plan() -> None:
    assert plan(25, rank=1, world_size=2).steps[0] == Share(13, 25)
