"""Hugging Face Trainer: a robust `compute_loss_func`, and a callback that moves its schedules."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from labelproof.data.notices import notice
from labelproof.losses import Loss, SparseRegularized, as_loss, parse_loss
from labelproof.losses.batch import is_probabilities

if TYPE_CHECKING:
    from transformers.trainer_callback import TrainerCallback, TrainerControl, TrainerState
    from transformers.training_args import TrainingArguments
else:
    try:
        from transformers.trainer_callback import TrainerCallback
    except ModuleNotFoundError as error:
        install = "pip install 'labelproof[transformers]'"
        raise ImportError(f"transformers is not installed: {install}") from error

__all__ = ["ScheduleCallback", "TrainerLoss", "trainer_loss"]

IGNORED = -100
"""The label that the Trainer does not count, which has no setting."""


class TrainerLoss:
    """A loss in the form of `Trainer(compute_loss_func=...)`; made by `trainer_loss`.

    Attributes:
        loss: The loss that is called. It follows the logits to their device.
    """

    def __init__(self, loss: Loss):
        self.loss = loss
        self._device: torch.device | None = None

    def __call__(
        self,
        outputs: Mapping[str, Any] | tuple[Any, ...] | Tensor,
        labels: Tensor | None,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Tensor:
        """The loss of a batch, with the signature that the Trainer expects.

        Args:
            outputs: The outputs of the model: with a key `logits`, or a tuple that starts with
                them. Classes are on the last axis, as in `(N, C)` and `(N, T, C)`, and on axis 1
                of images, `(N, C, H, W)`, or if only that fits the labels.
            labels: Class indices without the class axis, -100 for those to ignore; or class
                probabilities of the logits' shape.
            num_items_in_batch: Number of labels, without ignored ones, in all batches accumulated
                for one step. The loss is this batch's share of the mean over all of them.
        """
        if labels is None:
            raise ValueError("labels: expected a tensor, got None; the batches need a key 'labels'")
        logits, labels = _rows(_logits(outputs), labels)
        if logits.device != self._device:
            self.loss.to(logits.device)  # not part of the model, which the Trainer moves
            self._device = logits.device
        value = self.loss(logits, labels)
        if num_items_in_batch is None:
            return value
        # If all labels of a step are ignored, 0 / 0 would be NaN.
        items = torch.as_tensor(num_items_in_batch).clamp_min(1)
        return value * (_count(labels) / items)


def trainer_loss(loss: Loss | nn.Module | str) -> TrainerLoss:
    """Make a `compute_loss_func` for a Hugging Face Trainer.

    With gradient accumulation or several devices, a step equals that of a single batch of all these
    examples. (With class weights, whose mean divides by the weights, each accumulated batch divides
    by its own.)

    It is for classification: of sequences, of tokens, of images. The labels of a causal language
    model, which are the inputs themselves, would have to be shifted first.

    Args:
        loss: A loss of labelproof, any module over (logits, target), or a loss as text. Its
            reduction must be the mean and its ignored index -100, as the Trainer assumes.

    Example:
        >>> import torch
        >>> loss = trainer_loss("ce")
        >>> outputs = {"logits": torch.zeros(2, 3, 4)}  # two sequences, three tokens, four classes
        >>> loss(outputs, torch.tensor([[0, 1, -100], [2, -100, -100]]))
        tensor(1.3863)

        With the model and arguments of an existing Trainer:

        >>> loss = trainer_loss("ce+sr(tau=0.5,p=0.1)")
        >>> settings = dict(compute_loss_func=loss, callbacks=[ScheduleCallback(loss)])
        >>> # Trainer(model, arguments, train_dataset=..., **settings)
    """
    made = parse_loss(loss) if isinstance(loss, str) else as_loss(loss)
    if (made.reduction, made.ignore_index) != ("mean", IGNORED):
        got = f"{made.reduction!r} and {made.ignore_index}"
        raise ValueError(f"loss: expected reduction 'mean', ignore_index {IGNORED}, got {got}")
    return TrainerLoss(made)


class ScheduleCallback(TrainerCallback):
    """Moves the schedules of a loss to the Trainer's epoch, counted from 0.

    If the Trainer resumes in the middle of an epoch, so do the schedules.

    Args:
        loss: The result of `trainer_loss`, or a loss of labelproof that your own code calls.

    Example:
        >>> loss = trainer_loss("ce+sr(lambda0=1,rho=2)")
        >>> callback = ScheduleCallback(loss)
    """

    def __init__(self, loss: TrainerLoss | Loss):
        if not isinstance(loss, (TrainerLoss, Loss)):
            kind = type(loss).__name__
            raise TypeError(f"loss: expected what trainer_loss returned, or a loss, got {kind}")
        self.loss = loss.loss if isinstance(loss, TrainerLoss) else loss
        self.epoch = 0

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        """Start at the Trainer's epoch; warn if the best one is chosen by a loss that grows."""
        self.epoch = math.floor(state.epoch or 0)
        grows = any(isinstance(part, SparseRegularized) for part in self.loss.modules())
        by_loss = args.metric_for_best_model in (None, "loss", "eval_loss")
        if args.load_best_model_at_end and by_loss and grows:
            notice(
                "load_best_model_at_end: the evaluation loss grows with the weight of the penalty, "
                "so the first epoch would count as the best; set metric_for_best_model to accuracy"
            )

    def on_epoch_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **kwargs: Any,
    ) -> None:
        """Move to the epoch that starts or resumes."""
        # Counted: of data without a length, the Trainer's epoch is a share of all its steps.
        self.loss.set_epoch(self.epoch)
        self.epoch += 1


def _logits(outputs: Mapping[str, Any] | tuple[Any, ...] | Tensor) -> Tensor:
    if isinstance(outputs, Mapping):
        if "logits" not in outputs:
            raise ValueError(f"outputs: expected a key 'logits', got {', '.join(outputs)}")
        return outputs["logits"]
    # The Trainer does not pass labels to the model, so no loss comes before the logits.
    return outputs[0] if isinstance(outputs, (tuple, list)) else outputs


def _rows(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Put the classes of `(N, T, C)` on axis 1, by making every token an example.

    Logits of images, `(N, C, H, W)`, have them there already. Anything else is left unchanged, for
    the loss to raise the error.
    """
    per_pixel = (logits.shape[0], *logits.shape[2:])
    of_images = logits.ndim > 3 and labels.shape in (logits.shape, per_pixel)
    if logits.ndim < 3 or of_images:
        return logits, labels
    if is_probabilities(labels) and labels.shape == logits.shape:
        return logits.flatten(0, -2), labels.flatten(0, -2)
    if labels.shape == logits.shape[:-1]:
        return logits.flatten(0, -2), labels.flatten()
    return logits, labels


def _count(labels: Tensor) -> Tensor | int:
    """The number of labels that the Trainer counts: all entries but -100, of probabilities too."""
    return labels.numel() if is_probabilities(labels) else labels.ne(IGNORED).sum()
