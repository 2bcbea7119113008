import copy

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.backends.common import aot_autograd
from torch.testing import assert_close

from labelproof.models import make_network
from labelproof.training.kernels.fusible import (
    FusibleMaxPool2d,
    FusibleReLU,
    fusing_options,
    make_fusible,
)

# torch's own, while it traces any function with a gradient of its own.
pytestmark = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")


def _outcome(network: nn.Module, images: Tensor, *, compiled: bool) -> list[Tensor]:
    images = images.clone(memory_format=torch.preserve_format).requires_grad_()
    # Traced and differentiated as for the GPU's compiler, then run by torch itself.
    called = torch.compile(network, backend="aot_eager", dynamic=False) if compiled else network
    outputs = called(images)
    weight = torch.randn(outputs.shape, generator=torch.Generator().manual_seed(1))
    return [outputs, *torch.autograd.grad((outputs * weight).sum(), [images])]


def test_compiled_results_are_those_of_the_plain_layers_ties_included() -> None:
    plain = nn.Sequential(nn.ReLU(), nn.MaxPool2d(2))
    fusible = make_fusible(copy.deepcopy(plain))
    assert [type(layer) for layer in fusible] == [FusibleReLU, FusibleMaxPool2d]
    for shape, layout in (
        ((2, 3, 5, 6), torch.contiguous_format),
        ((2, 3, 4, 6), torch.channels_last),
    ):
        # Small whole numbers: most windows have their greatest twice, many have zeros only.
        draws = torch.Generator().manual_seed(0)
        images = torch.randint(-2, 3, shape, generator=draws).float().to(memory_format=layout)
        expected = _outcome(plain, images, compiled=False)
        for compiled in (False, True):
            assert_close(_outcome(fusible, images, compiled=compiled), expected, rtol=0, atol=0)


def test_a_compiler_is_shown_no_pooling() -> None:
    seen: list[str] = []

    def look(graph: torch.fx.GraphModule, _: object) -> torch.fx.GraphModule:
        seen.extend(str(node.target) for node in graph.graph.nodes)
        return graph

    images = torch.zeros(1, 1, 4, 4)
    pooling = nn.MaxPool2d(2)
    torch.compile(pooling, backend=aot_autograd(fw_compiler=look))(images)
    assert any("max_pool2d" in name for name in seen)
    seen.clear()
    torch.compile(make_fusible(pooling), backend=aot_autograd(fw_compiler=look))(images)
    assert seen
    assert not any("max_pool2d" in name for name in seen)


def test_other_layers_are_left_alone() -> None:
    for layer in (
        nn.MaxPool2d(3),
        nn.MaxPool2d(2, stride=1),
        nn.MaxPool2d(2, padding=1),
        nn.MaxPool2d(2, dilation=2),
        nn.MaxPool2d(2, ceil_mode=True),
        nn.MaxPool2d(2, return_indices=True),
        nn.ReLU(inplace=True),
    ):
        kind = type(layer)
        assert type(make_fusible(layer)) is kind


def test_the_compilers_options_are_known_to_it_and_for_these_layers_alone() -> None:
    import torch._inductor.config as config

    network = make_network("cnn4(width=4,hidden=8)", num_classes=3, input_shape=(1, 8, 8))
    assert fusing_options([network]) == {}
    options = fusing_options([nn.Linear(2, 2), make_fusible(network)])
    assert options
    assert all(hasattr(config, name) for name in options)
