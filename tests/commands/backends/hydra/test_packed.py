"""Packed layers compute what they did before, and weigh as much."""

import weakref
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from commands.backends.hydra._packed import PackedLinear, pack

SIZE = 256


@pytest.fixture(autouse=True)
def _same_numbers() -> Iterator[None]:
    """Draw the same random numbers in every test."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def linear(n_in: int = SIZE, n_out: int = SIZE, **options: object) -> nn.Linear:
    """Return a layer of random weights."""
    options = {"bias": False, "dtype": torch.float32} | options
    return nn.Linear(n_in, n_out, **options)  # type: ignore[arg-type]  # as the tests name them


@pytest.mark.parametrize("shape", [(1, 1), (12, 1), (3, 5), (0, 1)])
def test_a_packed_layer_computes_the_same(shape: tuple[int, int]) -> None:
    """Only the order of its sums is another."""
    net = nn.Sequential(linear(SIZE, 2 * SIZE))
    states = torch.randn(*shape, SIZE)
    expected = net(states)

    pack(net)

    assert isinstance(net[0], PackedLinear)
    torch.testing.assert_close(net(states), expected)


def test_weights_that_heads_share_are_packed_once() -> None:
    """LoRA of one matrix leaves the others to all heads; copies would not fit into memory."""
    one = linear()
    other = linear()
    other.weight = nn.Parameter(one.weight.detach(), requires_grad=False)  # the same storage
    net = nn.Sequential(one, other, linear())

    pack(net)

    assert net[0].weight is net[1].weight
    assert net[0].weight is not net[2].weight


def test_old_weights_are_given_up() -> None:
    """A model would weigh twice as much."""
    net = nn.Sequential(linear())
    old = weakref.ref(net[0].weight)

    pack(net)

    assert old() is None


@pytest.mark.parametrize(
    "layer",
    [
        linear(n_in=SIZE - 1),
        linear(n_out=SIZE - 1),
        linear(bias=True),
        linear(dtype=torch.bfloat16),
        linear(device="meta"),
    ],
    ids=["few inputs", "few outputs", "bias", "half precision", "not on a CPU"],
)
def test_all_other_layers_stay(layer: nn.Linear) -> None:
    """They gain nothing, or the packed layer cannot stand for them."""
    net = nn.Sequential(layer)

    pack(net)

    assert net[0] is layer


def broken(*_: object) -> torch.Tensor:
    """Refuse what is asked, as an operator does whose arguments have changed."""
    raise RuntimeError("_linear_pointwise() is missing value for argument 'algorithm'")


def kept(weight: torch.Tensor, *_: object) -> torch.Tensor:
    """Return a tensor as it is."""
    return weight


@pytest.mark.parametrize(
    "operators",
    [
        {},
        {"_reorder_linear_weight": broken},
        {"_reorder_linear_weight": kept, "_linear_pointwise": broken},
        {"_reorder_linear_weight": kept, "_linear_pointwise": lambda states, *_: 2 * states},
    ],
    ids=["no operators", "no packing", "no product", "another product"],
)
def test_where_the_operators_fail_all_layers_stay(
    monkeypatch: pytest.MonkeyPatch, operators: dict[str, object]
) -> None:
    """They are PyTorch's own affair, so another version may lack or change them."""
    net = nn.Sequential(linear())
    states = torch.randn(3, SIZE)
    expected = net(states)
    monkeypatch.setattr(torch.ops, "mkldnn", SimpleNamespace(**operators))

    pack(net)

    assert type(net[0]) is nn.Linear
    assert torch.equal(net(states), expected)
