"""Networks of the user's, by their place, and of other libraries."""

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from labelproof.models import make_network
from labelproof.models.text import format_network

SOURCE = """
from torch import nn

ready = nn.Linear(4, 2)
number = 3


def linear(num_classes, width=4, bias=True):
    return nn.Linear(width, num_classes, bias=bias)


nothing = dict
other_name = lambda classes: None


class Linear(nn.Linear):
    def __init__(self, *, num_classes):
        super().__init__(4, num_classes)

    @classmethod
    def made(cls, num_classes):
        return cls(num_classes=num_classes)
"""


@pytest.fixture(autouse=True)
def users_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "my_networks.py").write_text(SOURCE)
    (tmp_path / "my_broken.py").write_text("import my_missing_dependency")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("my_networks", None)  # each test has its own file


def make(text: str, generator: torch.Generator | None = None) -> nn.Module:
    return make_network(text, num_classes=5, input_shape=(4,), generator=generator)


def test_a_function_a_class_and_a_method_make_networks_with_what_is_in_parentheses() -> None:
    for name in ("linear", "Linear", "Linear.made"):
        assert make(f"my_networks:{name}")(torch.zeros(2, 4)).shape == (2, 5)
    network = make("my_networks:linear(width=7,bias=false)")
    assert (network.in_features, network.bias) == (7, None)


def test_the_generator_alone_decides_the_weights() -> None:
    before = torch.get_rng_state()
    # The first call imports the module, which draws a layer of its own.
    first, again, other = (
        make("my_networks:linear", torch.Generator().manual_seed(seed)).state_dict()
        for seed in (0, 0, 1)
    )
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(first["weight"], again["weight"])
    assert not torch.equal(first["weight"], other["weight"])


MISTAKES = {
    "my_network:linear": "'my_network:linear' cannot be imported (No module named 'my_network')",
    "my_networks.deep:linear": "No module named 'my_networks.deep'",
    "my_networks:liner": "module 'my_networks' has no attribute 'liner'",
    "my_networks:Linear.mode": "'Linear' has no attribute 'mode'",
    "my_broken:linear": "No module named 'my_missing_dependency'",
    "my_networks:number": "cannot be called with num_classes: ",
    "my_networks:ready": "cannot be called with num_classes: ",
    "my_networks:nothing": "expected 'my_networks:nothing' to return an nn.Module, got dict",
    "my_networks:other_name": "cannot be called with num_classes: ",
    "my_networks:linear(depth=3)": "cannot be called with num_classes, depth: ",
}


def test_a_mistake_is_named() -> None:
    for text, message in MISTAKES.items():
        with pytest.raises(ValueError, match=r"^network: ") as caught:
            make(text)
        assert message in str(caught.value)


def installed(library: str) -> bool:
    try:
        importlib.import_module(library)
    except Exception:
        return False
    return True


def test_names_are_kept_as_they_are_and_a_library_that_is_missing_is_named() -> None:
    for library in ("timm", "torchvision"):
        if not installed(library):
            with pytest.raises(ImportError, match=f"pip install {library}"):
                make_network(f"{library}/resnet18", num_classes=3, input_shape=(3, 64, 64))
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
    with pytest.raises(ValueError, match="did you mean 'resnet18'"):
        make_network("torchvision/resnt18", num_classes=3, input_shape=(3, 64, 64))
