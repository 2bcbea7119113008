"""Hugging Face Trainer: the loss it sees, what it accumulates, and schedules that follow it."""

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from labelproof import CrossEntropy, SparseRegularized, parse_loss

pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertForTokenClassification,
    Trainer,
    TrainerCallback,
    TrainerState,
    TrainingArguments,
)

from labelproof.integrations.transformers import ScheduleCallback, TrainerLoss, trainer_loss

TEXT = "ce+sr(tau=0.5,p=0.1,lambda0=1,rho=2,r=1)"
CLASSES = 3
LENGTH = 6
EXAMPLES = 12
"""Batches of 2 make 6 steps an epoch."""

SIZES = {"vocab_size": 20, "max_position_embeddings": LENGTH, "num_labels": CLASSES}
SIZES |= dict.fromkeys(("hidden_size", "intermediate_size"), 8)
SIZES |= dict.fromkeys(("num_hidden_layers", "num_attention_heads"), 1)
SIZES |= dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), 0)


class Noted(TrainerLoss):
    """Notes the weight, and the answer with what it was to."""

    def __init__(self, loss: Any):
        super().__init__(trainer_loss(loss).loss)
        self.weights: list[float] = []
        self.calls: list[tuple[Tensor, Tensor, Tensor]] = []

    def __call__(self, outputs: Any, labels: Any, num_items_in_batch: Any = None) -> Tensor:
        value = super().__call__(outputs, labels, num_items_in_batch)
        if isinstance(self.loss, SparseRegularized):
            self.weights.append(self.loss.weight)
        self.calls.append((outputs["logits"].detach(), labels, value.detach()))
        return value


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def make_rows(labels: Tensor) -> Any:
    tokens = torch.randint(0, 20, (len(labels), LENGTH), generator=seeded())
    return [{"input_ids": row, "labels": label} for row, label in zip(tokens, labels, strict=True)]


def sequence_labels() -> Tensor:
    return torch.randint(0, CLASSES, (EXAMPLES,), generator=seeded())


class Stream(torch.utils.data.IterableDataset[Any]):
    """Data without a length."""

    def __iter__(self) -> Any:
        return iter(make_rows(sequence_labels()))


def make_trainer(
    folder: Path, loss: Any, *, labels: Tensor | None = None, callbacks: Any = None, **options: Any
) -> Trainer:
    settings: dict[str, Any] = {"learning_rate": 0.05, "num_train_epochs": 3, "optim": "sgd"}
    settings |= {"output_dir": folder, "use_cpu": True, "dataloader_pin_memory": False}
    settings |= {"disable_tqdm": True, "report_to": "none", "save_strategy": "no"}
    settings["per_device_train_batch_size"] = 2
    labels = sequence_labels() if labels is None else labels
    kind = BertForTokenClassification if labels.ndim == 2 else BertForSequenceClassification
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = kind(BertConfig(**SIZES))
    return Trainer(
        model,
        TrainingArguments(**(settings | options)),
        train_dataset=make_rows(labels),
        compute_loss_func=loss,
        callbacks=[ScheduleCallback(loss)] if callbacks is None else callbacks,
    )


def weights(*epochs: int, steps: int = 6) -> list[float]:
    return [2.0**epoch for epoch in epochs for _ in range(steps)]


def test_the_schedule_follows_the_epochs(tmp_path: Path):
    loss = Noted(TEXT)
    make_trainer(tmp_path, loss).train()
    assert loss.weights == weights(0, 1, 2)
    by_hand = parse_loss(TEXT)
    for step, (logits, labels, value) in enumerate(loss.calls):
        by_hand.set_epoch(step // 6)
        assert torch.allclose(by_hand(logits, labels), value, rtol=1e-6)
    streamed = Noted(TEXT)
    trainer = make_trainer(tmp_path, streamed, max_steps=18)
    trainer.train_dataset = Stream()
    trainer.train()
    assert streamed.weights == weights(0, 1, 2)


def test_plain_cross_entropy_trains_as_the_model_does_itself(tmp_path: Path):
    ours = make_trainer(tmp_path, trainer_loss("ce"), num_train_epochs=1)
    theirs = make_trainer(tmp_path, None, callbacks=[], num_train_epochs=1)
    ours.train()
    theirs.train()
    assert same_weights(ours, theirs)


@pytest.mark.parametrize("stopped", [6, 9], ids=["between epochs", "within an epoch"])
def test_a_checkpoint_goes_on_at_its_epoch(tmp_path: Path, stopped: int):
    class Stop(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            control.should_save = control.should_training_stop = state.global_step == stopped

    first = Noted(TEXT)
    halted = make_trainer(tmp_path / "a", first, callbacks=[ScheduleCallback(first), Stop()])
    halted.train()
    assert first.weights == weights(0, 1, 2)[:stopped]
    second = Noted(TEXT)
    resumed = make_trainer(tmp_path / "a", second)
    resumed.train(resume_from_checkpoint=str(tmp_path / "a" / f"checkpoint-{stopped}"))
    assert second.weights == weights(0, 1, 2)[stopped:]


def test_accumulated_batches_step_as_one(tmp_path: Path):
    """Six batches of two, with unequal numbers of labels that count, are one of twelve."""
    labels = torch.randint(0, CLASSES, (EXAMPLES, LENGTH), generator=seeded())
    for row in range(EXAMPLES):  # 1 to 6 of a sequence count, as padding leaves them
        labels[row, 1 + row % LENGTH :] = -100
    once = {"labels": labels, "num_train_epochs": 1}
    in_parts = {**once, "gradient_accumulation_steps": 6}
    at_once = {**once, "per_device_train_batch_size": EXAMPLES}

    def naive(outputs: Any, labels: Any, num_items_in_batch: Any = None) -> Tensor:
        return trainer_loss(TEXT)(outputs, labels) / 6

    one = make_trainer(tmp_path, trainer_loss(TEXT), **at_once)
    many = make_trainer(tmp_path, trainer_loss(TEXT), **in_parts)
    means = make_trainer(tmp_path, naive, callbacks=[], **in_parts)
    for trainer in (one, many, means):
        trainer.train()
    assert same_weights(one, many)
    # The test can tell: a mean of means is another step where the batches count unequally.
    assert not same_weights(one, means)


def test_evaluation_reports_the_mean_loss(tmp_path: Path):
    loss = trainer_loss("gce(q=0.7)")
    trainer = make_trainer(tmp_path, loss, per_device_eval_batch_size=3)
    rows = make_rows(sequence_labels())
    found = trainer.evaluate(rows)["eval_loss"]
    predicted = trainer.predict(rows)
    by_hand = loss(torch.as_tensor(predicted.predictions), sequence_labels())
    assert found == pytest.approx(float(by_hand), rel=1e-5)


def test_the_best_epoch_is_not_the_one_of_the_least_loss(tmp_path: Path) -> None:
    chosen: dict[str, Any] = {"eval_strategy": "epoch", "save_strategy": "epoch"}
    best = TrainingArguments(str(tmp_path), load_best_model_at_end=True, **chosen)
    state: Any = TrainerState()
    for text, warned in ((TEXT, True), ("gce", False)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ScheduleCallback(trainer_loss(text)).on_train_begin(best, state, state)
        assert warned == any("metric_for_best_model" in str(each.message) for each in caught)


def same_weights(one: Trainer, other: Trainer) -> bool:
    pairs = zip(one.model.parameters(), other.model.parameters(), strict=True)
    return all(torch.allclose(a, b, rtol=1e-4, atol=1e-6) for a, b in pairs)


LOGITS = torch.randn(4, CLASSES, generator=seeded())
LABELS = torch.tensor([0, 1, 2, -100])


def test_logits_and_labels_may_have_any_form() -> None:
    held: list[Any] = [{"logits": LOGITS}, (LOGITS, None), [LOGITS], LOGITS]
    for outputs in held:
        assert trainer_loss("ce")(outputs, LABELS) == CrossEntropy()(LOGITS, LABELS)
    logits = torch.randn(2, 5, CLASSES, generator=seeded())
    labels = torch.tensor([[0, 1, 2, -100, -100], [1, 1, -100, 0, 2]])
    expected = parse_loss(TEXT)(logits.transpose(1, 2), labels)
    assert torch.allclose(trainer_loss(TEXT)((logits,), labels), expected)
    soft = torch.softmax(torch.randn(logits.shape, generator=seeded()), dim=-1)
    expected = parse_loss(TEXT)(logits.transpose(1, 2), soft.transpose(1, 2))
    assert torch.allclose(trainer_loss(TEXT)((logits,), soft), expected)
    for size in ((4, 5), (CLASSES, CLASSES)):
        logits = torch.randn(2, CLASSES, *size, generator=seeded())
        labels = torch.randint(0, CLASSES, (2, *size), generator=seeded())
        soft = torch.softmax(torch.randn(logits.shape, generator=seeded()), dim=1)
        for target in (labels, soft):
            assert trainer_loss(TEXT)((logits,), target) == parse_loss(TEXT)(logits, target)


def test_the_loss_is_this_batchs_share():
    expected = CrossEntropy(reduction="sum")(LOGITS, LABELS) / 6
    for items in (6, torch.tensor(6)):
        assert torch.allclose(trainer_loss("ce")((LOGITS,), LABELS, items), expected)
    for items in (None, 0, torch.tensor(0)):
        assert trainer_loss(TEXT)((LOGITS,), torch.full((4,), -100), items) == 0
    # Class weights divide by their own mean.
    weight = torch.tensor([1.0, 2.0, 5.0])
    expected = nn.functional.cross_entropy(LOGITS, LABELS, weight=weight)
    weighed = trainer_loss(CrossEntropy(weight=weight))
    assert torch.allclose(weighed((LOGITS,), LABELS, 3), expected)


def test_what_cannot_be_meant_is_refused() -> None:
    refused: list[dict[str, Any]] = [{"reduction": "sum"}, {"ignore_index": 255}]
    for settings in refused:
        for loss in (CrossEntropy(**settings), nn.CrossEntropyLoss(**settings)):
            with pytest.raises(ValueError, match=f"^loss: .*{next(iter(settings))}"):
                trainer_loss(loss)
    loss = trainer_loss("ce")
    with pytest.raises(ValueError, match="outputs: expected a key 'logits', got hidden"):
        loss({"hidden": LOGITS}, LABELS)
    with pytest.raises(ValueError, match="labels: expected a tensor, got None"):
        loss({"logits": LOGITS}, None)
    with pytest.raises(TypeError, match=r"loss: expected what trainer_loss returned, .* got str"):
        ScheduleCallback("ce")
    with pytest.raises(TypeError, match=r"loss: expected a torch\.nn\.Module"):
        trainer_loss(3)
