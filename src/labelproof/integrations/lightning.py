"""Lightning: schedules that follow the trainer's epochs, as a callback or inside a module."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from torch import nn

from labelproof.losses import Loss, SparseRegularized, as_loss, parse_loss
from labelproof.ranges import flag

__all__ = ["RobustModule", "ScheduleCallback"]


if TYPE_CHECKING:
    from lightning.pytorch import Callback, LightningModule, Trainer
else:
    # The same classes under two names, which do not take each other's instances.
    try:
        from lightning.pytorch import Callback, LightningModule
    except ModuleNotFoundError:
        try:
            from pytorch_lightning import Callback, LightningModule
        except ModuleNotFoundError as error:
            raise ImportError(
                "Lightning is not installed: pip install 'labelproof[lightning]'"
            ) from error


class ScheduleCallback(Callback):
    r"""Moves the schedules of every loss inside a module to the trainer's epoch.

    The losses are found by themselves, however deep they stand, provided they are submodules:
    `self.loss = SparseRegularized(...)` in the module's constructor, not a list or a function. A
    run that goes on from a checkpoint, also from the middle of an epoch, goes on at its epoch.

    Args:
        log: Log $\lambda$ and $\tau$ of each sparse-regularized loss, once an epoch, by the name
            the loss has in the module: `loss/lambda` and `loss/tau` for `self.loss`.

    Example:
        >>> from lightning.pytorch import Trainer
        >>> trainer = Trainer(callbacks=[ScheduleCallback()], accelerator="cpu", logger=False)
    """

    def __init__(self, *, log: bool = False):
        # Not `log`: Lightning puts the module's own method there before each hook.
        self.logged = flag("log", log)

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Move to the first epoch, or to the one that a checkpoint was in the middle of.

        Lightning does not start an epoch anew that it goes on with, so its hook would not be run.
        """
        if not _move(trainer, pl_module):
            kind = type(pl_module).__name__
            warnings.warn(f"no loss of labelproof is a submodule of {kind}", stacklevel=2)

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Move to the epoch that begins, and log where that led."""
        _move(trainer, pl_module)
        if self.logged:
            for name, value in _positions(pl_module):
                # The same on all devices; synced, since Lightning asks for that at epoch level.
                pl_module.log(name, value, sync_dist=True)


class RobustModule(LightningModule):
    """A Lightning module with a robust loss, `self.robust_loss`, that follows the epochs itself.

    No callback has to be remembered: the module brings its own, unless the trainer has one.
    A class of yours that is a Lightning module already goes behind it:
    `class Mine(RobustModule, Base)`. A checkpoint of a run with another loss is taken too: the
    weights are loaded as strictly as ever, and the loss is as it was made.

    Args:
        robust_loss: A loss of labelproof, any module over (logits, target), or a loss as text.
        *arguments: Passed on to the next class.
        **options: Passed on to the next class.

    Example:
        >>> import torch
        >>> class Classifier(RobustModule):
        ...     def __init__(self):
        ...         super().__init__("ce+sr(tau=0.5,p=0.1)")
        ...         self.network = nn.Linear(20, 4)
        ...
        ...     def training_step(self, batch, batch_index):
        ...         inputs, labels = batch
        ...         return self.robust_loss(self.network(inputs), labels)
        >>> Classifier().training_step((torch.zeros(2, 20), torch.tensor([0, 3])), 0).ndim
        0
    """

    robust_loss: Loss

    def __init__(self, robust_loss: Loss | nn.Module | str, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        made = parse_loss(robust_loss) if isinstance(robust_loss, str) else as_loss(robust_loss)
        self.robust_loss = made
        self.register_load_state_dict_pre_hook(_keep_own_loss)

    def configure_callbacks(self) -> Sequence[Callback]:
        """What the next class asks for, and a `ScheduleCallback` where the trainer has none.

        A callback of a module takes the place of the trainer's of that class, which may log.
        """
        asked: Sequence[Callback] | Callback = super().configure_callbacks()
        callbacks = list(asked) if isinstance(asked, Sequence) else [asked]
        present = [*callbacks, *getattr(self.trainer, "callbacks", [])]
        if not any(isinstance(callback, ScheduleCallback) for callback in present):
            callbacks.append(ScheduleCallback())
        return callbacks


def _keep_own_loss(
    module: RobustModule, state: dict[str, Any], prefix: str, *_arguments: Any
) -> None:
    """Leave the loss as it is where a checkpoint was written with another one.

    What is in a checkpoint of a loss is where its schedule stood, or class weights of torch's own:
    nothing to another loss, but torch would refuse the network's weights for it. A loss that learns
    something itself is left to torch, lest it stay at its first values and nobody know.
    """
    loss, start = module.robust_loss, f"{prefix}robust_loss."
    if next(loss.parameters(), None) is not None:
        return
    own = loss.state_dict(prefix=start)
    found = [key for key in state if key.startswith(start)]
    if own.keys() == set(found):
        return
    for key in found:
        del state[key]
    state.update(own)


def _move(trainer: Trainer, module: nn.Module) -> int:
    """Bring every loss of a module to the trainer's epoch; how many there are."""
    losses = [part for part in module.modules() if isinstance(part, Loss)]
    for loss in losses:
        loss.set_epoch(trainer.current_epoch)
    return len(losses)


def _positions(module: nn.Module) -> Iterator[tuple[str, float]]:
    for name, part in module.named_modules():
        if isinstance(part, SparseRegularized):
            yield f"{name}/lambda", part.weight
            yield f"{name}/tau", part.temperature
