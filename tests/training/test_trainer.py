import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import (
    CPU,
    plan_of,
    reference_optimizer,
    small,
    small_digits,
    small_run,
    train_epoch,
)
from torch import Tensor, nn

from labelproof.losses import SparseRegularized, parse_loss, sparse_rate
from labelproof.models.text import make_network
from labelproof.seeds import derive_seed
from labelproof.training.augmentation import gather_images, parse_augmentation
from labelproof.training.batches import generator_for
from labelproof.training.metrics import MEMORY
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
                module.generator = self.generator  # pyright: ignore[reportArgumentType]
        self.optimizer = reference_optimizer(configuration, self.network)
        self.mean = torch.tensor(dataset.mean).view(1, -1, 1, 1)
        self.std = torch.tensor(dataset.std).view(1, -1, 1, 1)

    def inputs(self, order: torch.Tensor, draws: torch.Tensor) -> torch.Tensor:
        images = torch.from_numpy(self.run.examples.dataset.train.array)
        if self.configuration.augmentation == "none":
            return (images[order].float() / 255 - self.mean) / self.std
        return gather_images(
            images.permute(0, 2, 3, 1).contiguous(),
            order,
            draws,
            parse_augmentation(self.configuration.augmentation),
            mean=self.mean.flatten(),
            std=self.std.flatten(),
        )

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
        start = 0
        for share in plan.steps:
            rows = slice(start, start + share.local)
            start += share.local
            order = plan.order[rows]
            target = torch.from_numpy(examples.given)[order]
            logits = self.network(self.inputs(order, plan.draws[rows]))
            if isinstance(self.loss, SparseRegularized):
                parts = self.loss.parts(logits, target)
                value = parts.total
                line = {
                    "base": parts.base.item(),
                    "penalty": parts.penalty.item(),
                    "sparse_rate": parts.sparse_rate.item(),
                    "weight": self.loss.weight_schedule(number),
                    "temperature": self.loss.temperature_schedule(number),
                }
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
                assert parameter.grad is not None
                parameter.grad += self.configuration.l1 * parameter.detach().sign()

    def accuracy(self) -> dict[str, float]:
        dataset = self.run.examples.dataset
        self.network.eval()
        images = (torch.from_numpy(dataset.test.array).float() / 255 - self.mean) / self.std
        with torch.no_grad():
            right = self.network(images).argmax(1).numpy() == dataset.test.labels
        return {"test_accuracy": 100 * right.mean()}

    def memory(self, predicted: dict[int, int]) -> dict[str, float]:
        examples = self.run.examples
        assert examples.clean is not None
        clean_fitted, wrong_fitted, wrong_corrected = [], [], []
        for index in examples.used.tolist():
            given, clean = examples.given[index], examples.clean[index]
            if index not in predicted:
                continue
            if given == clean:
                clean_fitted.append(predicted[index] == given)
            else:
                wrong_fitted.append(predicted[index] == given)
                wrong_corrected.append(predicted[index] == clean)
        return {
            "clean_fitted": float(np.mean(clean_fitted)),
            "wrong_fitted": float(np.mean(wrong_fitted or [0])),
            "wrong_corrected": float(np.mean(wrong_corrected or [0])),
        }


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


@pytest.mark.parametrize("count", [193, 194])
def test_a_last_batch_of_two_counts_and_one_of_one_does_not(count: int) -> None:
    run = small_run(small(), CPU, small_digits(count))
    run.begin()
    assert run.steps == (6 if count == 193 else 7)
    # Shares of labels have a test of their own.
    configuration = small(
        network="mlp(hidden=16,depth=1)"
    )  # a batch norm of two magnifies rounding
    assert_equal_training(small_run(configuration, CPU, small_digits(count)), left_out=MEMORY)


def test_nothing_is_said_of_clean_labels_or_a_test_split_that_are_not_there() -> None:
    metrics = train_epoch(small_run(small(), CPU, small_digits(clean=False)))
    assert not {"clean_fitted", "wrong_fitted", "wrong_corrected"} & metrics.keys()
    assert "test_accuracy" in metrics
    metrics = train_epoch(small_run(small(), CPU, small_digits(test=0)))
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


def test_drawn_labels_differ_from_step_to_step_and_epoch_to_epoch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from labelproof.losses import negative

    drawn: list[torch.Tensor] = []
    draw = negative.draw_complementary

    def told(target: torch.Tensor, *rest: Any, **options: Any) -> torch.Tensor:
        drawn.append(draw(torch.zeros_like(target), *rest, **options).flatten())
        return draw(target, *rest, **options)

    monkeypatch.setattr(negative, "draw_complementary", told)
    run = small_run(small(loss="nl"))
    drawn.clear()
    train_epoch(run)
    train_epoch(run)
    full = [tuple(each.tolist()) for each in drawn if len(each) == 32]
    assert len(full) == len(set(full)) == 12


def test_between_two_epochs_a_run_may_move_to_another_kind_of_device() -> None:
    first = small_run(small())
    train_epoch(first)
    moved, cut = first.checkpoint(), first.checkpoint()
    elsewhere = torch.zeros(16, dtype=torch.uint8)  # as long as a state of CUDA's generator
    moved.state["random.loss"] = cut.state["random.loss"] = elsewhere
    second = small_run(small())
    second.restore(moved)
    for run in (first, second):
        train_epoch(run)
    assert torch.equal(weights(first), weights(second))
    third = small_run(small())
    before = weights(third).clone()
    cut.values["step"] = 2
    with pytest.raises(ValueError, match="in the middle of an epoch on another kind of device"):
        third.restore(cut)
    assert torch.equal(weights(third), before)


def test_a_checkpoint_with_a_layer_too_many_is_refused() -> None:
    run = small_run(small())
    checkpoint = run.checkpoint()
    checkpoint.weights["layers.9.weight"] = torch.zeros(2)
    with pytest.raises(ValueError, match=r"network0\.layers\.9\.weight does not fit"):
        run.restore(checkpoint)


def test_too_few_examples_to_learn_from_are_named() -> None:
    with pytest.raises(ValueError, match="data: expected at least 2 training examples, got 1"):
        train_epoch(small_run(small(noise="none"), CPU, small_digits(1)))


@pytest.mark.parametrize("decay", [0.5, 0.99])
def test_the_average_is_the_moving_average_of_the_weights_and_is_kept(decay: float) -> None:
    run = small_run(small(average=decay, network="cnn4(width=4)"))
    expected = {name: each.clone() for name, each in run.networks[0].state_dict().items()}
    assert run.average is not None
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


def test_a_parameter_that_is_not_used_stays_and_stops_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("labelproof.training.trainer.make_network", lambda *_, **__: Deaf(10))
    run = small_run(small(weight_decay=0), CPU, small_digits())
    train_epoch(run)
    network = run.networks[0]
    assert isinstance(network, Deaf)
    assert torch.equal(network.unused, torch.ones(3))
