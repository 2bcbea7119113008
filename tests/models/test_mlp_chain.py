from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from labelproof.models import MLP
from labelproof.models.mlp import chain, fits, linear_layers


def network(hidden: tuple[int, ...] = (7, 5), dtype: torch.dtype = torch.float64) -> MLP:
    made = MLP(3, (6,), hidden=hidden, generator=torch.Generator().manual_seed(0)).to(dtype)
    for index, parameter in enumerate(made.parameters()):
        noise = torch.Generator().manual_seed(index)
        parameter.data = torch.randn(parameter.shape, generator=noise, dtype=dtype)
    return made


def rows(dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(11, 6, generator=torch.Generator().manual_seed(9), dtype=dtype)


def by_modules(made: MLP, inputs: Tensor) -> Tensor:
    return made.head(made.features(inputs))


def layers_of(made: MLP) -> list[nn.Linear]:
    layers = linear_layers(made.layers)
    assert layers is not None
    return layers


def gradients(made: MLP, inputs: Tensor, function: Callable[[MLP, Tensor], Tensor]) -> list[Tensor]:
    wanted = [each for each in (inputs, *made.parameters()) if each.requires_grad]
    outputs = function(made, inputs)
    upstream = torch.linspace(-1, 2, outputs.numel(), dtype=outputs.dtype).view(outputs.shape)
    return [outputs.detach(), *torch.autograd.grad(outputs, wanted, upstream)]


@pytest.mark.parametrize("hidden", [(), (7,), (7, 5, 4)])
@pytest.mark.parametrize("of_inputs", [False, True])
@pytest.mark.parametrize("frozen", [(), ("head.weight",), ("head.bias", "body.1.weight")])
def test_outputs_and_gradients_are_those_of_the_modules(
    hidden: tuple[int, ...], of_inputs: bool, frozen: tuple[str, ...]
) -> None:
    made = network(hidden)
    for name, parameter in made.named_parameters():
        parameter.requires_grad_(name not in frozen)
    inputs = rows().requires_grad_(of_inputs)
    assert fits(inputs, layers_of(made))
    ours, theirs = gradients(made, inputs, MLP.forward), gradients(made, inputs, by_modules)
    assert len(ours) == len(theirs)
    for our, their in zip(ours, theirs, strict=True):
        torch.testing.assert_close(our, their, rtol=1e-12, atol=1e-12)


def test_without_a_graph_it_is_the_same_and_the_inputs_stay() -> None:
    made, inputs = network(dtype=torch.float32), rows(torch.float32)
    before = inputs.clone()
    with torch.no_grad():
        assert torch.equal(made(inputs), made(inputs).detach())
    assert torch.equal(made(inputs).detach(), chain(inputs, layers_of(made)).detach())
    assert torch.equal(inputs, before)


def test_a_gradient_of_the_gradient_is_there() -> None:
    made = network()
    parameters = list(made.parameters())
    inputs = rows().requires_grad_()

    def curvature(function: Callable[[MLP, Tensor], Tensor]) -> list[Tensor]:
        value = function(made, inputs).square().sum()
        first = torch.autograd.grad(value, [inputs, *parameters], create_graph=True)
        total = torch.stack([each.square().sum() for each in first]).sum()
        return list(torch.autograd.grad(total, [inputs, *parameters]))

    for our, their in zip(curvature(MLP.forward), curvature(by_modules), strict=True):
        torch.testing.assert_close(our, their, rtol=1e-10, atol=1e-10)


def test_whoever_listens_to_a_layer_hears_it() -> None:
    made = network(dtype=torch.float32)
    for layer in (made.head, made.body[1], made.body[2]):
        heard: list[Tensor] = []
        hook = layer.register_forward_hook(lambda _, __, output, heard=heard: heard.append(output))
        made(rows(torch.float32))
        hook.remove()
        assert len(heard) == 1
    assert linear_layers(made.layers) is not None


def test_other_layers_are_left_to_themselves() -> None:
    class Doubled(nn.Linear):
        def forward(self, input: Tensor) -> Tensor:
            return 2 * super().forward(input)

    assert linear_layers(MLP(3, (6,), batch_norm=True).layers) is None
    made = network()
    made.head = Doubled(5, 3).double()
    assert linear_layers(made.layers) is None
    torch.testing.assert_close(made(rows()), made.head(made.features(rows())))
    without_bias = network()
    without_bias.head = nn.Linear(5, 3, bias=False).double()
    assert not fits(rows(), layers_of(without_bias))
    assert without_bias(rows()).shape == (11, 3)
    parametrized = network()
    nn.utils.parametrizations.weight_norm(parametrized.head)
    assert linear_layers(parametrized.layers) is None


def test_it_is_for_small_layers_and_the_weights_own_type() -> None:
    made = network(dtype=torch.float32)
    assert fits(rows(torch.float32), layers_of(made))
    assert not fits(rows(), layers_of(made))
    wide = MLP(3, (600,), hidden=(200,))
    assert not fits(torch.zeros(2, 600), layers_of(wide))
    with torch.autocast("cpu", torch.bfloat16):
        assert not fits(rows(torch.float32), layers_of(made))
        assert made(rows(torch.float32)).dtype == torch.bfloat16


@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # torch's own use
def test_transforms_of_functions_see_through() -> None:
    made, inputs = network(), rows()
    expected = by_modules(made, inputs)
    each = torch.func.vmap(made)(inputs.unsqueeze(1)).squeeze(1)
    torch.testing.assert_close(each, expected)
    parameters = {name: each.detach() for name, each in made.named_parameters()}

    def cost(parameters: dict[str, Tensor], row: Tensor) -> Tensor:
        return torch.func.functional_call(made, parameters, (row.unsqueeze(0),)).square().sum()

    per_row = torch.func.vmap(torch.func.grad(cost), in_dims=(None, 0))(parameters, inputs)
    whole = torch.autograd.grad(expected.square().sum(), list(made.parameters()))
    for (name, found), wanted in zip(per_row.items(), whole, strict=True):
        torch.testing.assert_close(found.sum(dim=0), wanted, msg=name)
    tangent = torch.ones_like(inputs)
    with forward_ad.dual_level():
        moved = made(forward_ad.make_dual(inputs, tangent))
        slope = forward_ad.unpack_dual(moved).tangent
    moved_along = torch.func.jvp(lambda given: by_modules(made, given), (inputs,), (tangent,))
    torch.testing.assert_close(slope, moved_along[1])


def test_it_compiles_in_one_graph() -> None:
    made, inputs = network(dtype=torch.float32), rows(torch.float32)
    torch.compiler.reset()
    compiled = torch.compile(made, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(inputs), made(inputs))
    torch.compiler.reset()
