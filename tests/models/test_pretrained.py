"""Networks of other libraries. torchvision does not import beside a CPU build of torch from another
source, and timm needs it; where they are missing, only what is said about that is tested."""

import importlib
import importlib.util

import pytest
import torch

from labelproof.models import make_network
from labelproof.models.text import format_network


def installed(library: str) -> bool:
    try:
        importlib.import_module(library)
    except Exception:
        return False
    return True


@pytest.mark.parametrize("library", ["timm", "torchvision"])
def test_a_library_that_is_missing_is_named(library: str) -> None:
    if installed(library):
        pytest.skip(f"{library} is installed")
    with pytest.raises(ImportError, match=f"pip install {library}"):
        make_network(f"{library}/resnet18", num_classes=3, input_shape=(3, 64, 64))


def test_names_are_kept_as_they_are_and_take_no_arguments() -> None:
    assert format_network("timm/vit_tiny_patch16_224.augreg") == "timm/vit_tiny_patch16_224.augreg"
    with pytest.raises(ValueError, match="timm/NAME or torchvision/NAME"):
        format_network("keras/resnet18")
    with pytest.raises(ValueError, match="for images of 1 or 3 channels"):
        make_network("torchvision/resnet18", num_classes=3, input_shape=(20,))


@pytest.mark.skipif(not installed("torchvision"), reason="torchvision does not import here")
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v3_small"])
def test_torchvision_networks_get_a_head_for_the_classes(name: str, channels: int) -> None:
    def build() -> torch.nn.Module:
        return make_network(
            f"torchvision/{name}",
            num_classes=7,
            input_shape=(channels, 64, 64),
            generator=torch.Generator().manual_seed(3),
            pretrained=False,
        ).eval()

    images = torch.randn(2, channels, 64, 64, generator=torch.Generator().manual_seed(1))
    first, second = build()(images), build()(images)
    assert first.shape == (2, 7)
    assert torch.equal(first, second)


@pytest.mark.skipif(not installed("torchvision"), reason="torchvision does not import here")
def test_a_misspelt_name_is_corrected() -> None:
    with pytest.raises(ValueError, match="did you mean 'resnet18'"):
        make_network("torchvision/resnt18", num_classes=3, input_shape=(3, 64, 64))
