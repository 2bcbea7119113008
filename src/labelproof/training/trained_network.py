"""Load a trained network from its run's folder."""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps
from torch import Tensor, nn

from labelproof.data.columns import Columns
from labelproof.data.dataset import Images, Rows
from labelproof.data.images import as_picture, look_at_each
from labelproof.models.blend import BLEND, Blend
from labelproof.models.text import format_network, is_factory
from labelproof.training.augmentation import prepare_images
from labelproof.training.batches import CHUNK, standardize
from labelproof.training.checkpoint import newest_whole
from labelproof.training.configuration import Configuration
from labelproof.training.execution import choose_device
from labelproof.training.geometry import centre_box
from labelproof.training.metrics import evaluating
from labelproof.training.provenance import Description, read_description
from labelproof.training.record import RunRecord, read_record
from labelproof.training.streaming import resize_box


@dataclass(frozen=True)
class TrainedNetwork:
    """The network of a run, finished or not.

    Attributes:
        folder: The run's folder.
        configuration: The run's configuration.
        description: The network's inputs and classes.
        network: The network with its weights, in evaluation mode.
        record: The record of a finished run; `None` for an unfinished one.
        epochs: The number of epochs the weights were trained for.
        device: The network's device.
    """

    folder: Path
    configuration: Configuration
    description: Description
    network: nn.Module
    record: RunRecord | None
    epochs: int
    device: torch.device

    @property
    def tabular(self) -> bool:
        """Whether the run was trained on rows of a table."""
        return len(self.description.input_shape) == 1

    @property
    def blended(self) -> bool:
        """Whether it is a blend of classifiers, with out-of-sample predictions of all labels."""
        return self.description.network == BLEND

    @property
    def columns(self) -> Columns:
        """Encodes the columns of a table as rows for the network."""
        if self.description.columns is None:
            raise ValueError(f"{self.folder}: the run was trained on images, not on a table")
        return Columns.from_values(self.description.columns)

    def probabilities(self, images: Images | Rows | Tensor, *, batch_size: int = CHUNK) -> Tensor:
        """The probability of each class for each image, `(N, C)`, float32 on the CPU.

        Args:
            images: `(N, C, H, W)`, uint8, or a source that decodes them one by one; grey or
                coloured, of any size, as `fit_image` takes them. For a run on a table, rows
                `(N, F)` as `columns.encode` returns them.
            batch_size: Number of images per batch; it changes results only by rounding.

        Raises:
            ValueError: They are not images, or rows of another length.
        """
        none = torch.zeros(0, len(self.description.class_names))
        return torch.softmax(torch.cat([none, *self.logits(images, batch_size)]), dim=1)

    def logits(self, images: Images | Rows | Tensor, batch_size: int = CHUNK) -> Iterator[Tensor]:
        """Iterate over the logits of each batch; see `probabilities`."""
        if self.tabular:
            for batch in self._rows(images).split(batch_size):
                yield self._predict(batch)
            return
        if isinstance(images, Tensor):
            images = images.cpu().numpy()

        def fit(place: int) -> NDArray[np.uint8]:
            return self.fit_image(images[place])

        places = range(len(images))
        # Images in memory take less time than handing them to threads.
        fitted = map(fit, places) if isinstance(images, np.ndarray) else look_at_each(places, fit)
        while batch := list(islice(fitted, batch_size)):
            yield self._predict_fitted(batch)

    def _rows(self, rows: Any) -> Tensor:
        """Check and standardise rows."""
        given = np.asarray(rows)
        (features,) = self.description.input_shape
        if given.ndim != 2 or given.shape[1] != features or given.dtype.kind != "f":
            raise ValueError(
                f"rows: expected numbers of shape (N, {features}), as the run was trained on, got "
                f"{given.dtype} of shape {given.shape}"
            )
        return standardize(given, mean=self.description.mean, std=self.description.std)

    def fitted_probabilities(self, images: NDArray[np.uint8]) -> Tensor:
        """The probabilities of a batch of outputs of `fit_image`, `(N, C)`."""
        return torch.softmax(self._predict_fitted(images), dim=1)

    def _predict_fitted(self, images: Iterable[NDArray[np.uint8]]) -> Tensor:
        pixels = np.stack([image.transpose(1, 2, 0) for image in images])
        return self._predict(self.prepare(torch.from_numpy(pixels)))

    def fit_image(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Convert, resize and crop a grey or coloured image of any size to the network's input.

        A run with resized crops uses the centre, as in its evaluation. Otherwise the image is
        resized to cover the network's input, and the excess is cut off.

        Args:
            image: `(1, H, W)` or `(3, H, W)`, uint8.

        Returns:
            `description.input_shape`, uint8.
        """
        channels, height, width = self.description.input_shape
        known = image.ndim == 3 and (len(image) == channels or {len(image), channels} == {1, 3})
        if not known or image.dtype != np.uint8:
            raise ValueError(
                f"images: expected uint8 of shape (1 or 3, H, W), got {image.dtype} of shape "
                f"{image.shape}"
            )
        if len(image) != channels:
            converted = as_picture(image).convert("L" if channels == 1 else "RGB")
            image = np.atleast_3d(np.asarray(converted)).transpose(2, 0, 1)
        if not self.description.crop and image.shape[1:] == (height, width):
            return image
        pixels = image.transpose(1, 2, 0)
        if crop := self.description.crop:
            box = centre_box(image.shape[1], image.shape[2], crop)
            return resize_box(pixels, box, crop).transpose(2, 0, 1)
        picture = Image.fromarray(image[0] if channels == 1 else np.ascontiguousarray(pixels))
        fitted = np.asarray(ImageOps.fit(picture, (width, height), Image.Resampling.BILINEAR))
        return fitted.reshape(height, width, channels).transpose(2, 0, 1)

    def prepare(self, pixels: Tensor) -> Tensor:
        """Normalise images `(N, H, W, C)`, uint8, of the network's size, on its device."""
        mean = torch.tensor(self.description.mean, device=self.device)
        std = torch.tensor(self.description.std, device=self.device)
        return prepare_images(pixels.to(self.device), mean=mean, std=std)

    def _predict(self, inputs: Tensor) -> Tensor:
        with evaluating(self.network):
            return self.network(inputs.to(self.device)).float().cpu()


def load_network(
    folder: str | os.PathLike[str], device: str = "cpu", *, network: str | None = None
) -> TrainedNetwork:
    """Load the network of a run, finished or not, with the weights of its last checkpoint.

    Nothing in the folder is executed. A `package.module:factory` is imported only if the caller
    names it too.

    Args:
        folder: The run's folder.
        device: `auto`, or a device's name.
        network: The run's own `package.module:factory`, to allow its code to run.

    Raises:
        FileNotFoundError: The folder is not a run's, or the run has no checkpoint yet.
        LaterFormatError: The checkpoint is of another version of labelproof.
        ValueError: Its files are corrupted, the weights do not fit the network, or the network is a
            factory that `network` does not name.

    Warns:
        UserWarning: The last checkpoint is corrupted, and the one before is used.
    """
    path = Path(folder)
    description = read_description(path)
    _check_factory(path, description.network, network)
    name, checkpoint, problems = newest_whole(path / "checkpoint")
    if checkpoint is None:
        kind = ValueError if problems else FileNotFoundError
        raise kind(
            f"{path} has no whole checkpoint to load weights from{'; '.join(['', *problems])}; "
            "resume its training, or train it anew with --fresh"
        )
    for problem in problems:
        warnings.warn(
            f"{problem}; the weights are those of the earlier checkpoint {name}", stacklevel=2
        )
    try:
        loaded = _with_weights(description, checkpoint.weights)
    except (RuntimeError, ValueError) as error:
        first = " ".join(str(error).split("\n\t")[1:2]) or str(error)
        raise ValueError(
            f"{path}: the weights do not fit the network {description.network}: {first.strip()}"
        ) from None
    # A blend computes in float64, which some devices lack.
    chosen = choose_device("cpu" if description.network == BLEND else device)
    return TrainedNetwork(
        folder=path,
        configuration=Configuration.recorded(checkpoint.values["configuration"]),
        description=description,
        network=loaded.to(chosen).eval(),
        record=read_record(path),
        epochs=checkpoint.values["epoch"],
        device=chosen,
    )


def _with_weights(description: Description, weights: dict[str, Tensor]) -> nn.Module:
    classes = len(description.class_names)
    if description.network != BLEND:
        network = description.make_network(pretrained=False)
        network.load_state_dict(weights)
        return network
    blend = Blend(weights)
    if (blend.features, len(blend.prior)) != (*description.input_shape, classes):
        raise ValueError(f"a blend of {blend.features} features and {len(blend.prior)} classes")
    return blend


def _check_factory(folder: Path, named: str, allowed: str | None) -> None:
    """Refuse to import a factory that only the folder names, since the folder may be untrusted."""
    if not is_factory(named):
        return
    if allowed is None or format_network(allowed) != format_network(named):
        raise ValueError(
            f"network: {folder} names {named}, whose code would be run; if you trust it, repeat it "
            f"with --network {shlex.quote(named)} (network={named!r})"
        )
