from __future__ import annotations

import torch

from labelproof.seeds import derive_seed
from labelproof.training.step import GlobalChance


def test_seeds_purposes_and_epochs_do_not_meet() -> None:
    derived = {
        derive_seed(seed, purpose, epoch)
        for seed in range(20)
        for purpose in ("order", "augmentation", "loss", "network 0", "network 1", "")
        for epoch in range(50)
    }
    assert len(derived) == 20 * 6 * 50


def test_the_derivation_is_pinned() -> None:
    # Another one would make every record of an earlier version a record of other draws.
    assert derive_seed(1, "order", 3) == 6344472847082523721


def test_runs_that_borrow_the_global_numbers_do_not_move_each_others() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    first, second = (GlobalChance(torch.device("cpu"), used=True) for _ in range(2))
    first.seed(1)
    second.seed(2)
    drawn: dict[int, list[torch.Tensor]] = {1: [], 2: []}
    for _ in range(3):
        for number, chance in ((1, first), (2, second)):
            with chance.lent():
                drawn[number].append(torch.rand(4))
    assert torch.equal(torch.get_rng_state(), before)
    for number, found in drawn.items():
        alone = torch.Generator().manual_seed(number)
        for each in found:
            assert torch.equal(each, torch.rand(4, generator=alone))


def test_numbers_go_on_from_a_state_that_was_kept() -> None:
    chance = GlobalChance(torch.device("cpu"), used=True)
    chance.seed(1)
    with chance.lent():
        torch.rand(4)
    kept = {name: state.clone() for name, state in chance.state.items()}
    with chance.lent():
        expected = torch.rand(4)
    other = GlobalChance(torch.device("cpu"), used=True)
    other.state = kept
    with other.lent():
        assert torch.equal(torch.rand(4), expected)
