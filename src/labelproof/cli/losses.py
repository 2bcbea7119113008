"""`labelproof losses`: list the losses, or check one."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from labelproof.cli.options import takes
from labelproof.losses import LogitClip, SparseRegularized, format_loss, parse_loss
from labelproof.losses.names import SUFFIXES, VERSION, known_losses, loss_arguments
from labelproof.text import format_value


@takes(losses=True)
def losses(text: str | None = None) -> None:
    """List the losses and their arguments, or check one.

    Losses can be summed with factors: 10*nce+0.1*mae. A leading n normalises: nce, nfl, ngce. +sr
    adds sparse regularization to everything on its left: gce(q=0.7)+sr(tau=0.5,p=0.1). +clip clips
    the logits for everything on its left: ce+clip(delta=1).

    Args:
        text: A loss to check, such as '10*nce+0.1*mae+sr'.
    """
    console = Console()
    if text is not None:
        loss = parse_loss(text)
        console.print(format_loss(loss), highlight=False, soft_wrap=True)
        console.print(str(loss), highlight=False, style="dim")
        return
    table = Table(title="Losses")
    table.add_column("name")
    table.add_column("arguments and defaults", overflow="fold")
    table.add_column("what it is", overflow="fold")
    for key, family in known_losses().items():
        table.add_row(
            key.partition(VERSION)[0], _defaults(loss_arguments(family)), _summary(family)
        )
    for key, family in {"sr": SparseRegularized, "clip": LogitClip}.items():
        table.add_row(f"+{key}", _defaults(SUFFIXES[key]), _summary(family))
    console.print(table)
    console.print("n before a name normalises it; normalized(...) takes any sum.", style="dim")


def _defaults(arguments: dict[str, object]) -> str:
    return ", ".join(f"{name}={format_value(value)}" for name, value in arguments.items())


def _summary(family: type) -> str:
    lines = (family.__doc__ or "").splitlines()
    return lines[0].replace("$", "").replace("\\", "") if lines else ""
