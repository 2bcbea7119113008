"""Which examples a run learns from, which are held out, and how much each counts."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from small_runs import CPU, load_small, small, small_digits, train

from labelproof.data import Split, load_digits
from labelproof.training import Examples, Job
from labelproof.training.batches import ResidentInputs
from labelproof.training.examples import choose_examples, choose_weights
from labelproof.training.metrics import spread
from labelproof.training.runner import Event, train_runs
from labelproof.training.trainer import Trainer


def test_without_noise_or_imbalance_everything_is_as_it_came() -> None:
    dataset = small_digits()
    examples = choose_examples(small(noise="none"), dataset)
    np.testing.assert_array_equal(examples.used, np.arange(200))
    np.testing.assert_array_equal(examples.given, dataset.train.labels)
    assert examples.given is not dataset.train.labels
    assert examples.clean is dataset.train.labels
    assert examples.noise_rate == 0
    # Labels that no one vouches for are not called clean.
    examples = choose_examples(small(), replace(dataset, clean=False))
    assert examples.clean is None
    assert examples.noise_rate > 0.2


@pytest.mark.filterwarnings("ignore::labelproof.noise.UnlearnableClassWarning")
@pytest.mark.parametrize(
    ("noise", "imbalance"),
    [
        ("symmetric:0.4", "none"),
        ("pair:0.3:exact", "long-tailed:0.1"),
        ("instance:0.3", "step:0.2"),
    ],
)
def test_noise_is_put_on_the_examples_that_are_used(noise: str, imbalance: str) -> None:
    dataset = load_digits()
    examples = choose_examples(small(noise=noise, imbalance=imbalance), dataset)
    labels, used = dataset.train.labels, examples.used
    assert (np.diff(used) > 0).all()
    assert (len(used) < len(labels)) == (imbalance != "none")
    unused = np.setdiff1d(np.arange(len(labels)), used)
    np.testing.assert_array_equal(examples.given[unused], labels[unused])
    wrong = np.mean(examples.given[used] != labels[used])
    assert examples.noise_rate == pytest.approx(wrong)
    rate = float(noise.split(":")[1])
    # Five standard deviations.
    assert abs(wrong - rate) < 5 * np.sqrt(rate * (1 - rate) / len(used))
    np.testing.assert_array_equal(examples.clean, labels)


def test_what_is_held_out_is_neither_learned_from_nor_chosen_by_the_truth() -> None:
    configuration = small(validation=0.25)
    examples = choose_examples(configuration, small_digits())
    assert len(examples.held) == 50
    assert not set(examples.held) & set(examples.used)
    assert len(examples.used) == 150
    # By the given labels alone: another truth behind the same ones holds out the same.
    given = np.bincount(examples.given[examples.held], minlength=10)
    whole = np.bincount(examples.given, minlength=10)
    assert np.all(np.abs(given - whole / 4) <= 1)
    assert np.array_equal(choose_examples(configuration, small_digits()).held, examples.held)
    other = choose_examples(replace(configuration, seed=2), small_digits())
    assert not np.array_equal(other.held, examples.held)
    with pytest.raises(ValueError, match=r"validation: .* a larger share, or add examples"):
        choose_examples(small(validation=0.02), small_digits(20, 10))


def test_validation_accuracy_is_counted_on_the_given_labels(tmp_path: Path) -> None:
    configuration = small(validation=0.25)
    train(Job(configuration, tmp_path))
    last = json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[-1])
    with np.load(tmp_path / "predictions.npz") as kept:
        predicted = kept["held_logits"].argmax(axis=1)
        right = predicted == kept["held_labels"]
        examples = choose_examples(configuration, small_digits())
        assert np.array_equal(kept["held"], examples.held)
        assert np.array_equal(kept["held_labels"], examples.given[examples.held])
    assert last["validation_accuracy"] == pytest.approx(100 * right.mean())
    assert last["predicted_classes"] == pytest.approx(spread(np.bincount(predicted).tolist()))
    assert 0 < last["test_accuracy"] <= 100


def test_a_run_is_let_go_when_it_is_hopeless_and_the_next_takes_its_place() -> None:
    asked: list[int] = []

    def jobs():
        for seed in (1, 2, 3):
            asked.append(seed)
            yield Job(small(seed=seed, validation=0.25))

    def give_up(event: Event) -> bool:
        return event.job.configuration.seed == 2 and event.value["epoch"] == 1

    said: list[tuple[int, str]] = []
    for event in train_runs(jobs(), CPU, load=load_small, give_up=give_up):
        if event.kind == "started":
            # The next is asked for when there is room for it, and not before.
            assert asked[-1] == event.job.configuration.seed
        if event.kind in ("abandoned", "finished"):
            said.append((event.job.configuration.seed, event.kind))
    assert said == [(1, "finished"), (2, "abandoned"), (3, "finished")]


def run_with(loss: str, weight: np.ndarray | None, copies: np.ndarray | None = None) -> Trainer:
    """One full-batch step on digits that count as told, or that are there as often."""
    dataset = small_digits(40, 10)
    if copies is not None:
        chosen = np.repeat(np.arange(40), copies)
        split = Split(dataset.train.array[chosen], dataset.train.labels[chosen])
        dataset = replace(dataset, splits={"train": split})
    labels = dataset.train.labels
    examples = Examples(dataset, np.arange(len(labels)), labels, None, 0.0, weight=weight)
    network = {"network": "mlp(hidden=16,depth=1)", "loss": loss, "noise": "none"}
    configuration = small(**network, batch_size=len(labels), epochs=1, clip_norm=0.0)
    run = Trainer(configuration, examples, ResidentInputs(dataset, CPU.device), CPU)
    run.begin()
    assert run.advance()
    return run


@pytest.mark.parametrize("loss", ["ce+sr", "nce+mae"])  # a gradient written down, and a traced one
def test_a_weight_of_two_is_the_example_twice(loss: str) -> None:
    copies = np.ones(40, dtype=int)
    copies[::4] = 3
    weighed = run_with(loss, (copies / copies.mean()).astype(np.float32))
    assert (weighed.direct is None) == (loss == "nce+mae")
    repeated = run_with(loss, None, copies)
    for name, tensor in weighed.networks[0].state_dict().items():
        other = repeated.networks[0].state_dict()[name]
        torch.testing.assert_close(tensor, other, rtol=1e-4, atol=1e-6)
    plain = run_with(loss, None)
    first = next(iter(plain.networks[0].parameters()))
    assert not torch.allclose(first, next(iter(weighed.networks[0].parameters())), atol=1e-5)


def test_balanced_classes_count_the_same() -> None:
    labels = np.array([0] * 30 + [1] * 10 + [3] * 2)
    used = np.arange(len(labels))
    weight = choose_weights(small(class_weight="balanced"), labels, used)
    sums = [weight[labels == each].sum() for each in (0, 1, 3)]
    assert np.allclose(sums, sums[0])
    assert weight.mean() == pytest.approx(1)
    examples = choose_examples(small(class_weight="balanced"), small_digits())
    assert examples.weight is not None
    assert choose_examples(small(), small_digits()).weight is None
    configuration = small(algorithm="co-teaching(rate=0.2)", class_weight="balanced")
    with pytest.raises(ValueError, match="supervised"):
        Trainer(configuration, examples, ResidentInputs(small_digits(), CPU.device), CPU)
