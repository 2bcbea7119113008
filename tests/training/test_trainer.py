"""A run step by step: what a plain loop makes of it, its tally, its chance and its gradients."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import plan_of, reference_optimizer, small, small_digits, small_run, train_epoch
from torch import Tensor, nn

from labelproof.losses import CrossEntropy, SparseRegularized, parse_loss, sparse_rate
from labelproof.models.text import make_network
from labelproof.seeds import derive_seed
from labelproof.training.augmentation import gather_images, parse_augmentation
from labelproof.training.batches import Fetched, generator_for
from labelproof.training.metrics import MEMORY, EpochSums, Tally, explain_divergence
from labelproof.training.step import make_direct
from labelproof.training.trainer import Trainer


class Reference:
    """The training of the paper as anyone would write it, one example-wise count at a time."""

    def __init__(self, run: Trainer):
        self.run, self.configuration = run, run.configuration
        configuration, dataset = self.configuration, run.examples.dataset
        self.network = make_network(
            configuration.network,
            num_classes=10,
            input_shape=dataset.image_shape,
            generator=generator_for(configuration.seed, "network 0"),
        )
        self.loss = parse_loss(configuration.loss)
        self.generator = torch.Generator()
        for module in self.loss.modules():
            if hasattr(module, "generator"):
                module.generator = self.generator
        self.optimizer = reference_optimizer(configuration, self.network)
        self.mean = torch.tensor(dataset.mean).view(1, -1, 1, 1)
        self.std = torch.tensor(dataset.std).view(1, -1, 1, 1)

    def inputs(self, order: torch.Tensor, draws: torch.Tensor) -> torch.Tensor:
        images = torch.from_numpy(self.run.examples.dataset.train.array)
        if self.configuration.augmentation == "none":
            return (images[order].float() / 255 - self.mean) / self.std
        augmentation = parse_augmentation(self.configuration.augmentation)
        scale = {"mean": self.mean.flatten(), "std": self.std.flatten()}
        return gather_images(images.permute(0, 2, 3, 1), order, draws, augmentation, **scale)

    def epoch(self, number: int) -> dict[str, float]:
        configuration, examples = self.configuration, self.run.examples
        rate = configuration.learning_rate
        rate *= (1 + math.cos(math.pi * number / configuration.epochs)) / 2
        self.optimizer.param_groups[0]["lr"] = rate
        self.loss.set_epoch(number)
        self.generator.manual_seed(derive_seed(configuration.seed, "loss", number))
        self.network.train()
        plan = plan_of(self.run, number)
        seen: list[dict[str, float]] = []
        predicted: dict[int, int] = {}
        sizes = [share.local for share in plan.steps]
        for order, draws in zip(plan.order.split(sizes), plan.draws.split(sizes), strict=True):
            target = torch.from_numpy(examples.given)[order]
            logits = self.network(self.inputs(order, draws))
            if isinstance(self.loss, SparseRegularized):
                parts = self.loss.parts(logits, target)
                value = parts.total
                names = ("base", "penalty", "sparse_rate")
                line = {name: getattr(parts, name).item() for name in names}
                line["weight"] = self.loss.weight_schedule(number)
                line["temperature"] = self.loss.temperature_schedule(number)
            else:
                value = self.loss(logits, target)
                line = {"sparse_rate": sparse_rate(torch.log_softmax(logits, 1)).mean().item()}
            self.optimizer.zero_grad()
            value.backward()
            if configuration.l1_before_clipping:
                self.add_signs()
            if configuration.clip_norm:
                nn.utils.clip_grad_norm_(self.network.parameters(), configuration.clip_norm)
            if not configuration.l1_before_clipping:
                self.add_signs()
            self.optimizer.step()
            seen += [{"train_loss": value.item(), **line}] * len(order)
            predicted |= dict(zip(order.tolist(), logits.argmax(1).tolist(), strict=True))
        metrics = {name: sum(line[name] for line in seen) / len(seen) for name in seen[0]}
        return metrics | {"learning_rate": rate} | self.accuracy() | self.memory(predicted)

    def add_signs(self) -> None:
        for parameter in self.network.parameters():
            if parameter.ndim > 1 or self.configuration.l1_on == "all":
                parameter.grad += self.configuration.l1 * parameter.detach().sign()

    def accuracy(self) -> dict[str, float]:
        dataset = self.run.examples.dataset
        self.network.eval()
        images = (torch.from_numpy(dataset.test.array).float() / 255 - self.mean) / self.std
        with torch.no_grad():
            right = self.network(images).argmax(1).numpy() == dataset.test.labels
        return {"test_accuracy": 100 * right.mean()}

    def memory(self, predicted: dict[int, int]) -> dict[str, float]:
        examples, shares = self.run.examples, {name: [] for name in MEMORY}
        for index, guess in predicted.items():
            given, clean = examples.given[index], examples.clean[index]
            if given == clean:
                shares["clean_fitted"].append(guess == given)
            else:
                shares["wrong_fitted"].append(guess == given)
                shares["wrong_corrected"].append(guess == clean)
        return {name: float(np.mean(values or [0])) for name, values in shares.items()}


MLP = "mlp(hidden=16,depth=2)"
CASES: list[dict[str, Any]] = [
    {},
    {"network": "cnn4(width=4)"},
    {"network": "cnn4(width=4)", "augmentation": "crop:1,flip", "loss": "10*nce+0.1*mae"},
    {"loss": "ce", "noise": "none", "clip_norm": 0, "weight_decay": 0},
    {"nesterov": True, "clip_norm": 0.1, "imbalance": "long-tailed:0.3"},
    # Without a batch norm: the bias before one has no gradient but rounding, which Adam magnifies.
    {"optimizer": "adamw", "learning_rate": 0.01, "network": "mlp(hidden=16,depth=1)"},
    {"loss": "nl", "momentum": 0.5},
    # Of these the gradients are written down, not traced.
    *(
        {"network": MLP, "learning_rate": 0.05, **changes}
        for changes in (
            {"loss": "ce", "network": "mlp(hidden=16,depth=0)"},
            {"loss": "gce(q=0.7)", "weight_decay": 0.1},
            {"loss": "gce(q=0.01)+sr", "clip_norm": 0.5, "nesterov": True},
            {"loss": "fl+sr(clamp=0.01,normalize=false)"},
        )
    ),
    {"batch_size": 64, "loss": "ce+sr(lambda0=4,rho=2,r=1,tau=0.1,normalize=false)"},
    {"batch_size": 500, "noise": "symmetric:0.6:exact"},
    {"l1": 0.01, "l1_on": "weights", "network": "cnn4(width=4)", "clip_norm": 0.1},
    # Without a batch norm here, too: the sign of that bias is the sign of rounding.
    *(
        {"l1": 0.01, "network": "mlp(hidden=16,depth=1)", "clip_norm": 0.1, **changes}
        for changes in (
            {"weight_decay": 0},
            {"l1_before_clipping": True, "nesterov": True},
            {"optimizer": "adamw", "learning_rate": 0.01},
        )
    ),
]


def assert_equal_training(run: Trainer, *, epochs: int = 2, left_out: Sequence[str] = ()) -> None:
    reference = Reference(run)
    for number in range(epochs):
        found, expected = train_epoch(run), reference.epoch(number)
        assert expected.keys() <= found.keys()
        for name, value in expected.items():
            if name in left_out:
                continue
            assert found[name] == pytest.approx(value, rel=1e-5, abs=1e-6), name
        for name, tensor in reference.network.state_dict().items():
            if "num_batches_tracked" not in name:
                mine = run.networks[0].state_dict()[name]
                torch.testing.assert_close(mine, tensor, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("changes", CASES, ids=str)
def test_an_epoch_is_what_a_plain_loop_makes_of_it(changes: dict[str, Any]) -> None:
    assert_equal_training(small_run(small(**changes)))


def test_a_last_batch_of_two_counts_and_one_of_one_does_not() -> None:
    configuration = small(network=MLP)  # a batch norm of two magnifies rounding
    for count, steps in ((193, 6), (194, 7)):
        run = small_run(configuration, dataset=small_digits(count))
        # Shares of labels have a test of their own.
        assert_equal_training(run, left_out=MEMORY)
        assert run.steps == steps


def test_nothing_is_said_of_clean_labels_or_a_test_split_that_are_not_there() -> None:
    metrics = train_epoch(small_run(small(), dataset=small_digits(clean=False)))
    assert not set(MEMORY) & metrics.keys()
    assert "test_accuracy" in metrics
    metrics = train_epoch(small_run(small(), dataset=small_digits(test=0)))
    assert "test_accuracy" not in metrics
    assert metrics["train_loss"] > 0


def weights(run: Trainer) -> torch.Tensor:
    return torch.cat([each.detach().flatten() for each in run.networks[0].parameters()])


@pytest.mark.parametrize("network", ["mlp(hidden=16,depth=1)", "small_runs:dropping"])
def test_the_seed_decides_everything_and_nothing_outside_does(network: str) -> None:
    runs = []
    for seed, disturbed in ((1, 0), (1, 99), (2, 0)):
        torch.manual_seed(disturbed)
        run = small_run(small(seed=seed, loss="nl", augmentation="crop:1,flip", network=network))
        torch.rand(disturbed + 1)
        before = torch.random.get_rng_state()
        metrics = train_epoch(run)
        assert torch.equal(torch.random.get_rng_state(), before)
        runs.append((metrics, weights(run)))
    assert runs[0][0] == runs[1][0]
    assert torch.equal(runs[0][1], runs[1][1])
    assert runs[0][0] != runs[2][0]


def test_a_checkpoint_with_a_layer_too_many_and_too_few_examples_are_refused() -> None:
    run = small_run(small())
    checkpoint = run.checkpoint()
    checkpoint.weights["layers.9.weight"] = torch.zeros(2)
    with pytest.raises(ValueError, match=r"network0\.layers\.9\.weight does not fit"):
        run.restore(checkpoint)
    elsewhere = run.checkpoint()  # as long as a state of CUDA's generator
    elsewhere.state["random.loss"] = torch.zeros(16, dtype=torch.uint8)
    with pytest.raises(ValueError, match=r"random\.loss does not fit .* another kind of device"):
        run.restore(elsewhere)
    with pytest.raises(ValueError, match="data: expected at least 2 training examples, got 1"):
        train_epoch(small_run(small(noise="none"), dataset=small_digits(1)))


def test_the_average_is_the_moving_average_of_the_weights_and_is_kept() -> None:
    decay = 0.5
    run = small_run(small(average=decay, network="cnn4(width=4)"))
    expected = {name: each.clone() for name, each in run.networks[0].state_dict().items()}
    for name, tensor in run.average.state_dict().items():
        assert torch.equal(tensor, expected[name])
    for _ in range(2):
        run.begin()
        while True:
            last = run.advance()
            for name, tensor in run.networks[0].state_dict().items():
                expected[name] = decay * expected[name] + (1 - decay) * tensor
            if last:
                break
        run.collect(run.end())
    assert run.evaluated is run.average
    for name, tensor in run.average.state_dict().items():
        torch.testing.assert_close(tensor, expected[name], rtol=1e-5, atol=1e-6)
        theirs, checkpoint = run.networks[0].state_dict()[name], run.checkpoint()
        assert not torch.equal(tensor, theirs)
        assert torch.equal(checkpoint.weights[name], tensor)
        assert torch.equal(checkpoint.state[f"network0.{name}"], theirs)


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_sixteen_bits_are_close_and_the_weights_stay_float32(precision: str) -> None:
    exact, short = small_run(small(precision="float32")), small_run(small(precision=precision))
    expected, found = train_epoch(exact), train_epoch(short)
    assert found["train_loss"] == pytest.approx(expected["train_loss"], rel=0.01)
    assert found["test_accuracy"] == pytest.approx(expected["test_accuracy"], abs=10)
    assert all(parameter.dtype == torch.float32 for parameter in short.networks[0].parameters())
    assert 0 < float((weights(exact) - weights(short)).abs().max()) < 0.05


class Deaf(nn.Module):
    """Has a parameter that no gradient reaches."""

    def __init__(self, num_classes: int):
        super().__init__()
        self.head = nn.Linear(64, num_classes)
        self.unused = nn.Parameter(torch.ones(3))

    def forward(self, images: Tensor) -> Tensor:
        return self.head(images.flatten(1))


def test_a_parameter_that_is_not_used_stays() -> None:
    run = small_run(small(weight_decay=0, network="training.test_trainer:Deaf"))
    train_epoch(run)
    assert torch.equal(run.networks[0].unused, torch.ones(3))


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
        assert (run.direct is not None) == (changes in ({}, plain)), changes


def test_the_direct_gradient_is_the_traced_one_and_frozen_parameters_are_left_to_torch() -> None:
    run = small_run(small(network=MLP))
    (network,), (optimizer,) = run.networks, run.optimizers
    run.begin()
    fetched = run.feed.fetch(32)
    with torch.no_grad():
        found = optimizer.flat.like(run.direct(fetched))
    loss = run.algorithm.loss(network(fetched.inputs), fetched.target)
    expected = torch.autograd.grad(loss, optimizer.parameters)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)
    network.get_parameter("head.bias").requires_grad_(False)
    assert make_direct(network, run.algorithm, optimizer, run.feed, run.tally) is None


def test_a_tally_counts_labels_and_keeps_the_first_step_that_went_wrong() -> None:
    logits = torch.eye(3)[[0, 1, 2, 0]]
    given, clean = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 2, 1])
    fetched = Fetched(torch.zeros(4), torch.arange(4), given, clean)
    for bad in (torch.nan, torch.inf, -torch.inf):
        tally = Tally(["part"], 3, torch.device("cpu"))
        for value in (1.0, 2.0, bad, 3.0, torch.nan):
            tally.add(torch.tensor(value), {"part": torch.tensor(0.5)}, logits, fetched)
        sums, _, _ = EpochSums(tally, 0, {}, 20).wait()
        assert (sums.pop("diverged"), int(tally.count)) == (2, 5)
        assert list(sums)[1:] == [
            *("part", "clean_fitted", "wrong_fitted", "wrong_corrected"),
            *("clean_seen", "wrong_seen", "correct"),
        ]
        assert list(sums.values())[1:] == [10, 5, 5, 5, 10, 10, 0]


def test_a_loss_that_is_nan_before_any_update_is_no_matter_of_the_learning_rate() -> None:
    first, later = (explain_divergence(step, 4, small(), CrossEntropy()) for step in (0, 1))
    assert "before any update" in first
    assert "a lower learning rate" in later
    assert "a lower learning rate" not in first
