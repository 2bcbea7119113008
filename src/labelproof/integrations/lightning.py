"""Lightning: schedules that follow the trainer's epochs, as a callback or inside a module."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
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

    It finds all losses that are submodules, at any depth: `self.loss = SparseRegularized(...)` in
    the module's constructor, not a list or a function. A run that resumes from a checkpoint, also
    from the middle of an epoch, resumes at its epoch.

    Args:
        log: Log $\lambda$ and $\tau$ of each sparse-regularized loss once an epoch, under the name
            of the loss in the module: `loss/lambda` and `loss/tau` for `self.loss`.

    Example:
        >>> from lightning.pytorch import Trainer
        >>> trainer = Trainer(callbacks=[ScheduleCallback()], accelerator="cpu", logger=False)
    """

    def __init__(self, *, log: bool = False):
        # Not `log`: Lightning puts the module's own method there before each hook.
        self.logged = flag("log", log)

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Move to the first epoch, or to the one that a checkpoint was saved in.

        Lightning does not run the hook for the start of an epoch that it resumes.
        """
        if not _move(trainer, pl_module):
            kind = type(pl_module).__name__
            warnings.warn(f"no loss of labelproof is a submodule of {kind}", stacklevel=2)

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Move to the epoch that starts, and log the position of each schedule."""
        _move(trainer, pl_module)
        if self.logged:
            for name, part in pl_module.named_modules():
                if isinstance(part, SparseRegularized):
                    # The same on all devices; synced, as Lightning asks for at epoch level.
                    pl_module.log(f"{name}/lambda", part.weight, sync_dist=True)
                    pl_module.log(f"{name}/tau", part.temperature, sync_dist=True)


class RobustModule(LightningModule):
    """A Lightning module with a robust loss, `self.robust_loss`, that follows the epochs itself.

    It needs no callback: the module adds its own, unless the trainer has one. Put a Lightning
    module of yours after it in the bases: `class Mine(RobustModule, Base)`. It also loads a
    checkpoint of a run with another loss: all weights have to match, and the loss stays as it was
    constructed.

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

    def __init__(self, robust_loss: Loss | nn.Module | str, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        made = parse_loss(robust_loss) if isinstance(robust_loss, str) else as_loss(robust_loss)
        self.robust_loss = made
        self.register_load_state_dict_pre_hook(_keep_own_loss)

    def configure_callbacks(self) -> Sequence[Callback]:
        """The callbacks of the next class, and a `ScheduleCallback` if the trainer has none.

        A module's callback would replace the trainer's of the same class, which may log.
        """
        requested: Sequence[Callback] | Callback = super().configure_callbacks()
        callbacks = list(requested) if isinstance(requested, Sequence) else [requested]
        present = [*callbacks, *getattr(self.trainer, "callbacks", [])]
        if not any(isinstance(callback, ScheduleCallback) for callback in present):
            callbacks.append(ScheduleCallback())
        return callbacks


def _keep_own_loss(
    module: RobustModule, state: dict[str, Any], prefix: str, *_arguments: Any
) -> None:
    """Keep the state of the loss if a checkpoint was written with another one.

    A checkpoint has the position of a loss's schedule, or class weights of a loss of torch. Another
    loss has no use for them, but torch would refuse the whole checkpoint. A loss with parameters
    is left to torch, which raises an error instead of silently keeping their initial values.
    """
    loss, start = module.robust_loss, f"{prefix}robust_loss."
    if next(loss.parameters(), None) is not None:
        return
    own = loss.state_dict(prefix=start)
    stored = [key for key in state if key.startswith(start)]
    if own.keys() == set(stored):
        return
    for key in stored:
        del state[key]
    state.update(own)


def _move(trainer: Trainer, module: nn.Module) -> int:
    """Move every loss of a module to the trainer's epoch; return their number."""
    losses = [part for part in module.modules() if isinstance(part, Loss)]
    for loss in losses:
        loss.set_epoch(trainer.current_epoch)
    return len(losses)
