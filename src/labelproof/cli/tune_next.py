"""What to type after a search."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from labelproof.data.published import is_known
from labelproof.losses.names import VERSION
from labelproof.training.configuration import Configuration
from labelproof.tuning.search import Tuning
from labelproof.verbs.fit_words import stem_of

__all__ = ["next_command"]


def next_command(
    found: Tuning,
    given: Mapping[str, Any],
    *,
    labels: Path | None = None,
    reading: Sequence[str] = (),
    loss_files: Sequence[Path] = (),
) -> str:
    """What to type to train with the choice on all examples.

    Args:
        found: What the search came to.
        given: The settings that were asked for, which the next command has to name, too.
        labels: The file of labels that stand in place of the data's own.
        reading: The flags with which the data are read.
        loss_files: Where losses of the user's own are, in case one was chosen.

    Example:
        >>> chosen = Tuning(Configuration("photos", loss="gce(q=0.7)", epochs=5), (), None)
        >>> next_command(chosen, {"epochs": 5, "noise": "none"})
        "labelproof fit photos --output photos-tuned --loss 'gce(q=0.7)' --epochs 5"
    """
    configuration = found.configuration
    if is_known(configuration.data):
        words = ["labelproof", "train", "--data", configuration.data]
        named = _beside_defaults(configuration)
    else:
        # A folder of its own, since the data's may hold what was trained before the search.
        folder = f"{stem_of(configuration.data, labels)}-tuned"
        words = ["labelproof", "fit", configuration.data, "--output", folder]
        named = {
            name: value
            for name, value in given.items()
            if value is not None and (name, value) != ("noise", "none")
        }
    words += ["--loss", configuration.loss, *reading]
    if VERSION in configuration.loss:
        words += [word for file in loss_files for word in ("--loss-file", str(file))]
    for name, value in named.items():
        words += [
            f"--{name.replace('_', '-')}",
            f"{value:g}" if isinstance(value, float) else str(value),
        ]
    return shlex.join(words)


def _beside_defaults(configuration: Configuration) -> dict[str, Any]:
    """The settings that `labelproof train` would not come to by itself."""
    plain = Configuration(configuration.data)
    # Its network depends on the images, so it is named in any case.
    names = [name for name in plain.differences(configuration) if name not in ("loss", "network")]
    values = configuration.as_values()
    return {"network": values["network"], **{name: values[name] for name in names}}
