"""Linear layers whose weights lie in memory as oneDNN multiplies by them.

PyTorch hands a product in float32 on a CPU to a library that lays out the weights anew every time,
which is a large part of the work where only some rows are read. Here it is done once, in place.

PyTorch keeps the operators for itself, and may change them: where they fail, all layers stay.
"""

from typing import Final, TypeGuard, cast

import torch
from torch import nn

_SMALLEST: Final = 256  # inputs and outputs of a layer; to call oneDNN costs what smaller ones gain


class PackedLinear(nn.Module):
    """A linear layer without a bias."""

    def __init__(self, weight: nn.Parameter) -> None:
        """Take what `_packed` made of a weight (out, in)."""
        super().__init__()
        self.out_features, self.in_features = weight.shape
        self.weight = weight

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return (..., out) of (..., in)."""
        made = torch.ops.mkldnn._linear_pointwise(states, self.weight, None, "none", [], "")  # noqa: SLF001  # PyTorch has no public name for it
        return cast("torch.Tensor", made)


def pack(module: nn.Module) -> None:
    """Replace a module's large linear layers in float32 on a CPU; those that are shared, once.

    Their old weights are given up, unless something else has them, too.
    """
    if not _can_pack():
        return
    made: dict[int, nn.Parameter] = {}  # by the place of the old weight
    for parent in [*module.modules()]:
        for name, child in parent.named_children():
            if _is_packable(child):
                place = child.weight.data_ptr()
                if place not in made:
                    made[place] = _packed(child.weight)
                setattr(parent, name, PackedLinear(made[place]))


def _can_pack() -> bool:
    """Return whether this PyTorch has the operators, and they do what they should."""
    weight = torch.eye(_SMALLEST)
    try:
        made = PackedLinear(_packed(weight))(weight)
    except (AttributeError, RuntimeError, TypeError):  # none, without oneDNN; or of other arguments
        return False
    return torch.equal(made, weight)


def _is_packable(module: nn.Module) -> TypeGuard[nn.Linear]:
    return (
        type(module) is nn.Linear
        and len([*module.parameters()]) == 1  # no bias
        and module.weight.device.type == "cpu"
        and module.weight.dtype == torch.float32
        and min(module.weight.shape) >= _SMALLEST
    )


def _packed(weight: torch.Tensor) -> nn.Parameter:
    laid_out = torch.ops.mkldnn._reorder_linear_weight(weight.detach())  # noqa: SLF001  # likewise
    return nn.Parameter(laid_out, requires_grad=False)
