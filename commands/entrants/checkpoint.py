"""Make an entrant from a checkpoint: weights, or an adapter that names its base.

Both are folders here, or names on the Hub. It needs no torch.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

from commands.entrants.files import read_entrant
from commands.entrants.folder_or_hub import FetchSnapshot, find_weights
from commands.entrants.weights import places_of_base, tensor_types
from commands.errors import WeightsError
from commands.settings.schema import GenerationSection
from commands.settings.sections import HfSection
from ledger.events.registration import Entrant

_FloatType: TypeAlias = Literal["float32", "bfloat16", "float16"]
_FLOATS: Final[Mapping[str, _FloatType]] = {"F32": "float32", "BF16": "bfloat16", "F16": "float16"}


def read_checkpoint(
    checkpoint: Path,
    name: str,
    generation: GenerationSection,
    adapters: Sequence[Path] = (),
    *,
    revision: str | None = None,
    fetch: FetchSnapshot | None = None,
) -> Entrant:
    """Return the entrant of a checkpoint, in the float type of its weights.

    Args:
        checkpoint: Weights, or an adapter that names its base weights.
        name: Of the entrant.
        generation: How it generates; its `dtype` counts if it is set.
        adapters: More adapters, merged in order.
        revision: Of a checkpoint on the Hub; None: its main branch.
        fetch: Asks the Hub; None: only folders on this machine are found.

    Raises:
        WeightsError: A file is missing or unreadable, does not fit, or is of another float type.
    """
    own = find_weights(checkpoint, Path(), fetch, revision=revision).folder
    config = own / "adapter_config.json"
    if config.exists():
        weights, revision = base_weights(config, fetch), None
        adapters = (own, *adapters)
    else:
        weights = checkpoint
    section = HfSection(id=name, weights=weights, revision=revision, adapters=tuple(adapters))
    how = generation
    if "dtype" not in generation.model_fields_set:
        folder = find_weights(weights, Path(), fetch, revision=revision).folder
        how = generation.model_copy(update={"dtype": _float_type(folder)})
    return read_entrant(section, how, Path(), fetch)


def base_weights(config: Path, fetch: FetchSnapshot | None = None) -> Path:
    """Return the folder of the weights that an adapter's configuration names, or their name.

    A relative path starts where the process runs, as in peft, or else beside the adapter's folder.
    Without such a folder, the Hub may have weights of this name.

    Raises:
        WeightsError: The configuration cannot be read, or there is no such folder.
    """
    remedy = "set it to the folder of the weights that the adapter belongs to"
    try:
        named = Path(str(json.loads(config.read_bytes())["base_model_name_or_path"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = "base_model_name_or_path cannot be read"
        raise WeightsError(config, why, remedy) from error
    for place in places_of_base(config.parent, str(named)):
        return place
    if fetch is not None and find_weights(named, Path(), fetch).commit:
        return named
    raise WeightsError(config, f"base_model_name_or_path is {str(named)!r}, no folder here", remedy)


def _float_type(weights: Path) -> _FloatType:
    """Return the float type of most of the weights' tensors."""
    counted = Counter(each for each in tensor_types(weights) if each.startswith(("F", "BF")))
    stored = next((name for name, _ in counted.most_common(1)), "F32")
    if stored not in _FLOATS:
        why = f"its tensors are {stored}, but must be one of {', '.join(_FLOATS)}"
        raise WeightsError(weights, why, "convert them, or set dtype")
    return _FLOATS[stored]
