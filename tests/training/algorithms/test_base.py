"""What holds for every algorithm: one graph, static shapes, a draw that belongs to the run."""

from typing import Any

import pytest
import torch
from torch import Tensor

from labelproof import CrossEntropy, SparseRegularized, parse_loss
from labelproof.losses import Loss, as_loss
from labelproof.training.algorithms import (
    ALGORITHMS,
    Algorithm,
    Batch,
    NegativeToPositive,
    format_algorithm,
    make_algorithm,
)

SIZE, CLASSES, EXAMPLES = 16, 5, 40


def made(
    text: str, loss: str | Loss = "ce", noise_rate: float | None = 0.4, epochs: int | None = 8
) -> Algorithm:
    sizes = {"num_classes": CLASSES, "num_examples": EXAMPLES, "epochs": epochs}
    loss = parse_loss(loss) if isinstance(loss, str) else loss
    return make_algorithm(text, loss, noise_rate=noise_rate, **sizes)


def batch_for(algorithm: Algorithm, *, seed: int = 0) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    logits = tuple(
        (4 * torch.randn(SIZE, CLASSES, generator=generator)).requires_grad_()
        for _ in range(algorithm.num_networks)
    )
    target = torch.randint(CLASSES, (SIZE,), generator=generator)
    return Batch(logits, target, torch.randperm(EXAMPLES, generator=generator)[:SIZE])


EVERY = [
    ("supervised", "ce"),
    ("supervised", "10*nce+0.1*mae"),
    ("supervised", "gce+sr"),
    ("supervised", "ce+sr(smoothing=0.1)"),
    ("supervised", "nl(expected=true)"),
    ("elr(beta=0.5)", "ce"),
    ("co-teaching", "ce"),
    ("co-teaching(rate=estimate)", "ce+sr"),
    ("nlnl", "ce"),
]


@pytest.mark.parametrize(("text", "loss"), EVERY)
def test_one_scalar_for_each_network_parts_that_keep_their_names_and_a_state(text: str, loss: str):
    algorithm, twin = made(text, loss), made(text, loss)
    names = None
    for epoch in (0, 1, 3, 7):
        algorithm.set_epoch(epoch)
        losses, parts = algorithm.objectives(batch_for(algorithm, seed=epoch))
        assert len(losses) == algorithm.num_networks
        for value in losses:
            assert value.shape == ()
            assert value.requires_grad
            assert torch.isfinite(value)
        for part in parts.values():
            assert part.shape == ()
            assert not part.requires_grad
        assert names is None or list(parts) == names
        names = list(parts)
        algorithm.after_epoch(epoch)
    twin.load_state_dict(algorithm.state_dict())
    for each in (algorithm, twin):
        each.set_epoch(5)
    found, expected = (dict(each.named_buffers()) for each in (twin, algorithm))
    torch.testing.assert_close(found, expected, equal_nan=True)


@pytest.mark.parametrize(("text", "loss"), [EVERY[5], *EVERY[7:]])
def test_an_epoch_moves_without_a_new_graph(text: str, loss: str):
    algorithm, twin = made(text, loss), made(text, loss)
    torch._dynamo.reset()
    graphs = 0

    def count(graph: Any, inputs: list[Tensor]) -> Any:
        nonlocal graphs
        graphs += 1
        return graph

    compiled = torch.compile(algorithm.objectives, backend=count, fullgraph=True, dynamic=False)
    for epoch in (0, 3, 5, 7):
        algorithm.set_epoch(epoch)
        twin.set_epoch(epoch)
        with torch.random.fork_rng():
            torch.manual_seed(epoch)
            found = compiled(batch_for(algorithm, seed=epoch))
            torch.manual_seed(epoch)
            expected = twin.objectives(batch_for(twin, seed=epoch))
        torch.testing.assert_close(found.losses, expected.losses)
        torch.testing.assert_close(found.parts, expected.parts)
    assert graphs == 1


@pytest.mark.parametrize(("text", "loss"), [("nlnl", "ce"), ("supervised", "nl+0.5*mae")])
def test_draws_come_from_the_generator_of_the_run(text: str, loss: str):
    def values(seed: int, elsewhere: int) -> list[float]:
        algorithm = made(text, loss)
        assert algorithm.draws
        algorithm.use_generator(torch.Generator().manual_seed(seed))
        with torch.random.fork_rng():
            torch.manual_seed(elsewhere)
            before = torch.get_rng_state()
            batch = batch_for(algorithm)
            drawn = [algorithm.objectives(batch).losses[0].item() for _ in range(3)]
            assert torch.equal(torch.get_rng_state(), before)
        return drawn

    assert values(1, 1) == values(1, 2) != values(2, 1)
    assert len(set(values(1, 1))) == 3


WEIGHTED = CrossEntropy(weight=torch.ones(5))
REFUSED: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "co-teaching": [
        *(("noise_rate", {"noise_rate": rate}) for rate in (1.1, "0.4")),
        *(("ramp_epochs", {"ramp_epochs": -1}), ("exponent", {"exponent": 0})),
        ("loss", {"loss": WEIGHTED}),
    ],
    "nlnl": [
        *(("negative_epochs", {"negative_epochs": each}) for each in (-1, 1.5, "2")),
        ("selective_epochs", {"negative_epochs": 1, "selective_epochs": 0.5}),
        ("epochs", {"negative_epochs": 0.6, "epochs": 0}),
        ("epochs", {"negative_epochs": 0.6, "selective_epochs": 0.4, "epochs": 8}),
        ("epochs", {"negative_epochs": 9, "selective_epochs": 0, "epochs": 8}),
        *(("loss", {"loss": loss}) for loss in (parse_loss("nl+ce"), WEIGHTED)),
    ],
    "elr": [("beta", {"beta": 1.5}), ("lambda", {"weight": -1})],
}


def test_what_cannot_be_meant_is_refused():
    everyone = [("loss", {"loss": CrossEntropy(reduction="sum")})]
    everyone += [("num_classes", {"num_classes": 1}), ("num_examples", {"num_examples": 0})]
    usual = {"loss": CrossEntropy(), "num_classes": 5, "num_examples": 3}
    for family, algorithm in ALGORITHMS.items():
        for name, options in [*everyone, *REFUSED.get(family, [])]:
            with pytest.raises((TypeError, ValueError), match=f"^{name}: expected"):
                algorithm(**{**usual, **options})


def test_the_objective_is_the_loss():
    for text in ("ce", "10*nce+0.1*mae", "gce(q=0.5)", "fl(gamma=0.5)"):
        algorithm = made("supervised", text)
        batch = batch_for(algorithm)
        certain = batch.logits[0].detach().softmax(1).numpy().max(axis=1) > 0.99
        assert 0 < certain.mean() < 1
        (value,), parts = algorithm.objectives(batch)
        assert value == parse_loss(text)(batch.logits[0], batch.target)
        assert parts == {"sparse_rate": pytest.approx(certain.mean())}


LOSSES = [
    "ce+sr",
    "ce+sr(tau=0.1,p=0.1,lambda0=4,rho=2,r=5,normalize=false)",
    "10*nce+mae+sr(p=0.01,clamp=1e-7)",
    "ce+sr(tau_rho=0.9)",
    "ce+sr(smoothing=0.1)",
]


def test_the_parts_are_the_losss_own():
    foreign = (
        CrossEntropy(weight=torch.linspace(0.1, 2, CLASSES)),
        torch.nn.CrossEntropyLoss(label_smoothing=0.1),
        as_loss(torch.nn.CrossEntropyLoss(weight=torch.linspace(1, 2, CLASSES))),
    )
    for loss in (*map(parse_loss, LOSSES), *map(SparseRegularized, foreign)):
        algorithm = made("supervised", loss)
        batch = batch_for(algorithm)
        for epoch in (0, 45):
            algorithm.set_epoch(epoch)
            (value,), parts = algorithm.objectives(batch)
            expected = loss.parts(batch.logits[0].detach(), batch.target)
            torch.testing.assert_close(value, loss(*batch.logits, batch.target))
            torch.testing.assert_close(parts["penalty"], expected.penalty)
            assert parts["sparse_rate"] == expected.sparse_rate
            # A difference is as exact as what it is a difference of.
            precision = 1e-6 * float(expected.total)
            torch.testing.assert_close(parts["base"], expected.base, atol=precision, rtol=1e-6)


def test_texts_have_one_form():
    for text, canonical in {
        " Supervised() ": "supervised",
        "co-teaching": "co-teaching(ramp=10,exponent=1)",
        "co-teaching(ramp=5, rate=.40)": "co-teaching(rate=0.4,ramp=5,exponent=1)",
        "co-teaching(rate=estimate)": "co-teaching(rate=estimate,ramp=10,exponent=1)",
        "CO-TEACHING(exponent=2e0)": "co-teaching(ramp=10,exponent=2)",
        "nlnl(selective=0.25,negative=0.5)": "nlnl(negative=0.5,selective=0.25,samples=1)",
        "ELR(lambda=3.0, beta=.7)": "elr(beta=0.7,lambda=3)",
        "elr": "elr(beta=0.7,lambda=3)",
        "nlnl(negative=5, samples=110)": "nlnl(negative=5,selective=0.25,samples=110)",
    }.items():
        assert format_algorithm(text) == format_algorithm(canonical) == canonical
        assert type(made(text)) is ALGORITHMS[canonical.partition("(")[0]]
    # Arguments arrive.
    peers = made("co-teaching(rate=0.25,ramp=5,exponent=2)")
    assert (float(peers.noise_rate), peers.ramp_epochs, peers.exponent) == (0.25, 5, 2)
    stages = made("nlnl(negative=0.25,selective=3,samples=4)")
    assert (stages.first_selective, stages.first_positive, stages.samples) == (2, 5, 4)


def test_the_runs_noise_rate_serves_where_the_text_gives_none():
    for text, known, expected in (
        ("co-teaching", 0.5, 0.5),
        ("co-teaching(rate=0.25)", 0.5, 0.25),
        ("co-teaching(ramp=3)", 0.0, 0.0),
        ("co-teaching(rate=estimate)", 0.5, None),
        ("co-teaching", None, None),
    ):
        algorithm = made(text, noise_rate=known)
        assert algorithm.estimates == (expected is None)
        assert float(algorithm.noise_rate) == (expected or 0)


def test_mistakes_are_named():
    for text, named in {
        "co-teching": "did you mean 'co-teaching'",
        "zzz": "supervised, co-teaching, nlnl, elr, got 'zzz'",
        "": "expected a name",
        "co-teaching(rat=0.4)": "rate, ramp, exponent, got 'rat'; did you mean 'rate'",
        "supervised(rate=1)": "supervised takes no arguments, got 'rate'",
        "co-teaching(0.4)": "expected an argument",
        "co-teaching(rate=0.4,rate=0.5)": "'rate' is given twice",
        "co-teaching(rate=estimat)": "did you mean 'estimate'",
        "co-teaching(ramp=estimate)": "ramp in co-teaching, got 'estimate'",
    }.items():
        with pytest.raises(ValueError, match=f"^algorithm: .*{named}"):
            format_algorithm(text)
    for text, named in {
        "co-teaching(rate=1.5)": "rate",
        "nlnl(negative=7,selective=1)": "epochs",
        "nlnl(samples=0)": "samples",
    }.items():
        with pytest.raises(ValueError, match=rf"^algorithm [\w-]+\(.*\): {named}: expected"):
            made(text)
    with pytest.raises(TypeError, match="algorithm: expected a string"):
        format_algorithm(3)
    # Shares need the length of the run.
    with pytest.raises(ValueError, match=r"^algorithm nlnl\(.*\): negative: expected whole"):
        made("nlnl", epochs=None)
    assert isinstance(made("nlnl(negative=5,selective=2)", epochs=None), NegativeToPositive)
