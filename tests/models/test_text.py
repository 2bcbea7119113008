import itertools
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from labelproof.models import MLP, EightLayerCNN, FourLayerCNN, ResNet, format_network, make_network
from labelproof.text import TextError


def make(text: str, **options: Any) -> nn.Module:
    return make_network(text, **{"num_classes": 5, "input_shape": (3, 8, 8), **options})


def seeded(number: int) -> torch.Generator:
    return torch.Generator().manual_seed(number)


def test_text_makes_the_network_it_names() -> None:
    cases: list[tuple[str, Any, dict[str, Any]]] = [
        ("cnn4", FourLayerCNN, {}),
        ("cnn4(width=12,hidden=64)", FourLayerCNN, {"width": 12, "hidden": 64}),
        ("cnn8(width=8)", EightLayerCNN, {"width": 8}),
        ("resnet34(width=4)", ResNet, {"depth": 34, "width": 4}),
        ("resnet50-imagenet(width=4)", ResNet, {"depth": 50, "stem": "imagenet", "width": 4}),
        ("mlp", MLP, {}),
        ("mlp(hidden=8,depth=3,batch_norm=true)", MLP, {"hidden": (8,) * 3, "batch_norm": True}),
    ]
    for text, kind, options in cases:
        expected = kind(5, (3, 8, 8), **options, generator=seeded(0))
        network = make(text, generator=seeded(0))
        assert (type(network), repr(network)) == (kind, repr(expected))
        values = expected.state_dict()
        assert all(torch.equal(value, values[name]) for name, value in network.state_dict().items())


def test_one_network_is_written_in_one_way() -> None:
    for text, expected in {
        "cnn4": "cnn4",
        " CNN4 ( ) ": "cnn4",
        "cnn4(width=32,hidden=128)": "cnn4",
        "cnn4( width = 012 , hidden=64)": "cnn4(hidden=64,width=12)",
        "resnet18-imagenet(width=64)": "resnet18-imagenet",
        "mlp(batch_norm=False,depth=1)": "mlp(depth=1)",
        "mlp(hidden=8, batch_norm=TRUE)": "mlp(batch_norm=true,hidden=8)",
        "a.b:Make": "a.b:Make",
        "a.b:Make( z=1, b=true )": "a.b:Make(b=true,z=1)",
    }.items():
        assert format_network(text) == format_network(expected) == expected


MISTAKES: dict[str, list[tuple[str, int]]] = {
    "did you mean 'resnet34-imagenet'": [("resnet34imagenet", 0)],
    "got 'like'": [("nothing like it", 8)],
    "a name such as cnn8": [("", 0)],
    "an argument such as name=value": [("cnn4(8)", 5), ("cnn4(width=8,)", 13)],
    "a whole number": [("cnn4(width=-8)", 5), ("cnn4(width=8.5)", 5), ("cnn4(width=1e10)", 5)],
    "the end": [("cnn4(width=8)(hidden=8)", 13), ("cnn4)", 4)],
    "unexpected character": [("cnn4(width=__import__('os'))", 22)],
    "cnn4 takes width, hidden, got 'widht'; did you mean 'width'": [("cnn4(widht=8)", 5)],
    "got 'generator'": [("cnn4(generator=1)", 5)],
    "a whole number up to 10,000 for width, got true": [("cnn4(width=true)", 5)],
    "true or false for batch_norm, got 1": [("mlp(batch_norm=1)", 4)],
    "no arguments": [("timm/resnet18(width=8)", 14)],
    "expected one of cnn4": [("a.b:c:d", 0), ("a..b:c", 0)],
    "at most 2,000 characters": [("(" * 5000, 2000)],
}


def test_a_mistake_in_the_text_is_named() -> None:
    for message, mistakes in MISTAKES.items():
        for (text, position), read in itertools.product(mistakes, (make, format_network)):
            with pytest.raises(TextError, match=r"^network: ") as refused:
                read(text)
            assert message in refused.value.problem, text
            assert refused.value.position == position, text
    with pytest.raises(TypeError, match="network"):
        format_network(4)
    for text, shape, named in (
        ("cnn4", (64,), "^network: cnn4 is for images.*network='mlp'"),
        ("cnn4", (1, 3, 8), "image_shape"),
        ("cnn8", (3, 8, 7), "image_shape"),
        ("cnn4(width=0)", (1, 8, 8), "width"),
        ("mlp(hidden=0)", (8,), "hidden"),
    ):
        with pytest.raises(ValueError, match=named):
            make(text, input_shape=shape)


def test_writing_imports_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "untouched_networks.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    assert format_network("untouched_networks:make") == "untouched_networks:make"
    assert "untouched_networks" not in sys.modules
