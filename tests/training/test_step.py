"""A step: its tally, its random numbers, and gradients that are written down, not traced."""

from typing import Any

import torch
from small_runs import CPU, small, small_run

from labelproof.training.batches import Fetched
from labelproof.training.metrics import Epoch, Tally
from labelproof.training.optimizer import Optimizer
from labelproof.training.step import GlobalChance, make_direct

MLP = "mlp(hidden=16,depth=2)"


def test_runs_that_take_the_direct_way() -> None:
    plain: dict[str, Any] = {"loss": "gce(q=0.7)", "optimizer": "adamw", "average": 0.9}
    for changes in (
        {},
        plain,
        *({"loss": loss} for loss in ("nce+mae", "nl")),
        *({"precision": precision} for precision in ("bf16", "fp16")),
        *({"network": f"mlp(hidden={rest})"} for rest in ("16,depth=1,batch_norm=true", "400")),
        {"network": "cnn4(width=4)"},
        {"algorithm": "co-teaching"},
    ):
        run = small_run(small(**{"network": MLP, **changes}))
        assert (run.plain.direct is not None) == (changes in ({}, plain)), changes


def test_frozen_parameters_stay_and_the_others_have_the_gradient_that_is_traced() -> None:
    run = small_run(small(network=MLP))
    network = run.networks[0]
    frozen = [network.get_parameter(name) for name in ("head.bias", "body.3.weight")]
    for parameter in frozen:
        parameter.requires_grad_(False)
    optimizer = Optimizer(run.configuration, network)
    direct = make_direct(network, run.algorithm, optimizer, run.feed, run.tally)
    assert direct is not None
    run.begin()
    fetched = run.feed.fetch(32)
    with torch.no_grad():
        found = optimizer.flat.like(direct(fetched))
    loss = run.algorithm.loss(network(fetched.inputs), fetched.target)
    expected = torch.autograd.grad(loss, optimizer.parameters)
    assert len(found) == len(list(network.parameters())) - len(frozen)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


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


def test_a_tally_counts_labels_and_keeps_the_first_step_that_went_wrong() -> None:
    logits = torch.eye(3)[[0, 1, 2, 0]]
    given, clean = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 2, 1])
    fetched = Fetched(torch.zeros(4), torch.arange(4), given, clean)
    for bad in (torch.nan, torch.inf, -torch.inf):
        tally = Tally(["part"], 3, CPU.device)
        for value in (1.0, 2.0, bad, 3.0, torch.nan):
            tally.add(torch.tensor(value), {"part": torch.tensor(0.5)}, logits, fetched)
        counted = Epoch(tally, 0, {}, 20).wait()
        assert (counted.diverged, int(tally.count)) == (2, 5)
        sums = counted.sums
        del sums["train_loss"]
        assert list(sums.values()) == [10, 5, 5, 5, 10, 10]
        assert list(sums)[1:] == [
            *("clean_fitted", "wrong_fitted", "wrong_corrected", "clean_seen", "wrong_seen")
        ]
