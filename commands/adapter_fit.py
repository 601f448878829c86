"""Whether a LoRA adapter fits its base, from the headers of their files.

Found here, a misfit stops a run before anything is recorded. The backend checks again, tensor by
tensor, when it merges.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from commands.errors import WeightsError
from commands.weights import tensor_shapes

_LORA_KEY: Final = re.compile(r"base_model\.model\.(.+)\.lora_([AB])(?:\.default)?\.weight")
_N_LISTED: Final = 8

Shape = tuple[int, ...]


def require_fit(base: Path, adapter: Path) -> None:
    """Require that every LoRA pair of an adapter has a weight in the base to be added to.

    Raises:
        WeightsError: The adapter holds no LoRA pair, or pairs that fit nowhere, which are listed.
    """
    pairs = _pairs(tensor_shapes(adapter))
    if not pairs:
        raise WeightsError(adapter, "it holds no LoRA tensors", "name a folder saved by peft")
    weights = tensor_shapes(base)
    faults = [fault for module in sorted(pairs) for fault in _faults(module, pairs, weights)]
    if faults:
        more = f" and {len(faults) - _N_LISTED} more" if len(faults) > _N_LISTED else ""
        why = f"the adapter does not fit {base}: {'; '.join(faults[:_N_LISTED])}{more}"
        raise WeightsError(adapter, why, "use the weights that it was trained on")


def _pairs(shapes: Mapping[str, Shape]) -> dict[str, dict[str, Shape]]:
    """Group an adapter's tensors by module: A is (rank, in), B is (out, rank)."""
    pairs: dict[str, dict[str, Shape]] = {}
    for key, shape in shapes.items():
        if match := _LORA_KEY.fullmatch(key):
            pairs.setdefault(match[1], {})[match[2]] = shape
    return pairs


def _faults(
    module: str, pairs: Mapping[str, Mapping[str, Shape]], weights: Mapping[str, Shape]
) -> Iterator[str]:
    pair, weight = pairs[module], weights.get(f"{module}.weight")
    if pair.keys() != {"A", "B"}:
        yield f"{module} has lora_{''.join(pair)} only"
    elif weight is None:
        yield f"there is no {module}"
    elif len(weight) == len(pair["A"]) == len(pair["B"]) == 2:  # noqa: PLR2004  # linear layers
        product = (pair["B"][0], pair["A"][1])
        transposed = product[::-1]  # as GPT-2's Conv1D keeps it
        if weight not in {product, transposed} or pair["A"][0] != pair["B"][1]:
            yield f"{module} is {list(weight)}, the adapter's {list(product)}"
