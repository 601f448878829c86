"""Weights on disk: where they lie, their digests, their tensors' shapes, and whether adapters fit.

Settings name a folder on this machine, or weights on the Hub. Only files are read, without torch,
so that a misfit is found before anything is recorded.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from pydantic import BaseModel, TypeAdapter

from commands.errors import MissingExtra, NotFetched, WeightsError, shortened
from ledger.identity import Digest, digest_of
from projections.evaluations.metrics import numbered_label

_NAME: Final = re.compile(
    r"(?P<name>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@(?P<revision>\S+))?", re.ASCII
)


class HubSnapshot(NamedTuple):
    """A model's files at one commit, in the Hub's cache on this machine."""

    folder: Path
    commit: str


FetchSnapshot: TypeAlias = Callable[[str, str | None], HubSnapshot]
"""Returns the files of `org/name` at a branch, tag or commit, from the Hub or its cache here.

It raises NotFetched where neither has them, and MissingExtra without the Hub's client.
"""


class FoundWeights(NamedTuple):
    """Where weights or an adapter lie on this machine."""

    folder: Path
    label: str  # which may end in the step of a training
    commit: str | None = None  # on the Hub; None: a folder of the user's own


def find_weights(named: Path, folder: Path, fetch: FetchSnapshot | None) -> FoundWeights:
    """Return where weights or an adapter lie; a path that exists goes before a name on the Hub.

    Args:
        named: A path, or `org/name` on the Hub, or `org/name@v1` for its branch, tag or commit v1.
        folder: Where relative paths start.
        fetch: Asks the Hub; None: only folders on this machine are found.

    Raises:
        WeightsError: A folder has a revision, or there is neither a folder nor such a name. A path
            that can be no name on the Hub is returned even if nothing is there.
    """
    path = (folder / named).resolve()
    on_hub = _NAME.fullmatch(named.as_posix())
    if path.exists() or fetch is None or on_hub is None:
        return FoundWeights(path, path.name)
    name, revision = on_hub["name"], on_hub["revision"]
    if revision is not None and (folder / name).exists():
        why = f"@{revision} is for names on the Hub, and {name} is a folder here"
        raise WeightsError(path, why, f"leave @{revision} out, or move the folder away")
    missing = "there is no such folder of weights"
    try:
        snapshot = fetch(name, revision)
    except NotFetched as error:
        raise WeightsError(path, f"{missing}, and {error.why}", error.remedy) from error
    except MissingExtra as error:
        remedy = f"correct the path; {name} is not looked up on the Hub: {error}"
        raise WeightsError(path, missing, remedy) from error
    label = name.rpartition("/")[2]
    return FoundWeights(snapshot.folder.resolve(), label, snapshot.commit)


def name_of_weights(named: Path, folder: Path) -> str:
    """Return the name of a folder of weights, or of those on the Hub without their revision."""
    on_hub = None if (folder / named).exists() else _NAME.fullmatch(named.as_posix())
    return named.name if on_hub is None else on_hub["name"].rpartition("/")[2]


# What transformers and peft read; other files in the folder do not change a response.
READ_SUFFIXES: Final = frozenset({".safetensors", ".json", ".jinja", ".model", ".txt"})
_TEMPLATES: Final = "additional_chat_templates"  # the one subfolder that transformers reads
_POINTER: Final = b"version https://git-lfs"  # how a file begins that Git LFS has not fetched


def folder_digest(folder: Path) -> Digest:
    """Digest a folder of weights: the names and contents of the files that are read.

    Raises:
        WeightsError: The folder is missing, holds no safetensors, or cannot be read.
    """
    if not folder.is_dir():
        remedy = f"download it, for example with `hf download ORG/NAME --local-dir {folder}`"
        raise WeightsError(folder, "there is no such folder of weights", remedy)
    paths = (*folder.iterdir(), *folder.glob(f"{_TEMPLATES}/*"))
    files = sorted(file for file in paths if file.suffix in READ_SUFFIXES)
    if not any(file.suffix == ".safetensors" for file in files):
        raise WeightsError(folder, "it holds no *.safetensors file", "convert the weights first")
    return digest_of([[file.relative_to(folder).as_posix(), file_digest(file)] for file in files])


def file_digest(file: Path) -> Digest:
    """Digest a file. The digest is cached until the file's size, times or inode change.

    A training loop saves to the same file again and again, in one process.

    Raises:
        WeightsError: It cannot be read, or is a Git LFS pointer.
    """
    try:
        now = file.stat()
    except OSError as error:
        raise _unreadable(file, error) from error
    return _digest(file, (now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns))


@cache
def _digest(file: Path, _state: tuple[int, ...]) -> Digest:
    try:
        with file.open("rb") as stream:
            is_pointer = stream.read(len(_POINTER)) == _POINTER
            stream.seek(0)
            digest = Digest(hashlib.file_digest(stream, "sha256").hexdigest())
    except OSError as error:
        raise _unreadable(file, error) from error
    if is_pointer:
        raise WeightsError(file, "it is a Git LFS pointer", "fetch the file with `git lfs pull`")
    return digest


def _unreadable(file: Path, error: OSError) -> WeightsError:
    remedy = "fetch the file again, or correct its permissions"
    return WeightsError(file, f"it cannot be read: {error.strerror}", remedy)


def training_step(folder: Path, label: str) -> int | None:
    """Return the step at which a training saved a checkpoint; None: it is not known.

    transformers' Trainer writes it beside the weights; else their label may end in it: the folder's
    name, or the name on the Hub.

    Raises:
        WeightsError: trainer_state.json cannot be read.
    """
    state = folder / "trainer_state.json"
    if not state.exists():
        named = numbered_label(label)
        return named[1] if named else None
    step = _raw(state).get("global_step")
    if not isinstance(step, int) or step < 0:
        remedy = "save the checkpoint again, or remove the file"
        raise WeightsError(state, "its global_step cannot be read", remedy)
    return step


def tensor_shapes(folder: Path) -> Mapping[str, tuple[int, ...]]:
    """Return the shape of every tensor in a folder's safetensors files, from their headers."""
    return {name: each.shape for name, each in _tensors(folder)}


def tensor_types(folder: Path) -> Sequence[str]:
    """Return the type of every tensor, such as "F32" or "BF16", as `tensor_shapes`."""
    return [each.dtype for _, each in _tensors(folder)]


def _tensors(folder: Path) -> Iterator[tuple[str, "_Entry"]]:
    for file in sorted(folder.glob("*.safetensors")):
        header = _safetensors_header(file)
        yield from (named for named in header.items() if named[0] != "__metadata__")


class _Entry(BaseModel):
    """A tensor in a safetensors header; `__metadata__` has no shape and no type."""

    shape: tuple[int, ...] = ()
    dtype: str = ""


_Header: Final = TypeAdapter(dict[str, _Entry])


def _safetensors_header(file: Path) -> Mapping[str, _Entry]:
    """Read a safetensors header: eight bytes of length, then JSON."""
    try:
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            # Eight bytes of another format, such as a Git LFS pointer, ask for exabytes.
            return _Header.validate_json(stream.read(min(length, file.stat().st_size)))
    except (OSError, ValueError) as error:
        remedy = "fetch the file again: it is cut off, or not safetensors"
        raise WeightsError(file, "its header cannot be read", remedy) from error


_LORA_KEY: Final = re.compile(r"base_model\.model\.(.+)\.lora_([AB])(?:\.default)?\.weight")
_HEAD_KEY: Final = re.compile(
    r"base_model\.model\.model\.layers\.([0-9]+)\.mlp\.(?:gate|up|down)_proj"
    r"\.lora_[AB](?:\.default)?\.weight"
)

_OF_MLPS: Final = (
    "use shards of the MLPs of the last layers, with the weights and the manifest.json of their"
    " training"
)

Shape = tuple[int, ...]
_OF_EXPERTS: Final = re.compile(r"\.(?:experts|block_sparse_moe|router|gate)(?:\.|$)")
"""Modules that the files of a mixture of experts name otherwise than the loaded weights: their fit
is checked where they are loaded, before the first response."""


def require_same_family(base: Path, adapter: Path) -> None:
    """Require that an adapter was trained on weights of the base's family, as far as it tells.

    Equal shapes are not enough: those of two families may be the same. An adapter tells by the
    class of its weights, or by where they lie, if they are on this machine.

    Raises:
        WeightsError: It was trained on another family.
    """
    ours, settings = _raw(base / "config.json"), _raw(adapter / "adapter_config.json")
    mapped = settings.get("auto_mapping")
    trained_on = mapped.get("base_model_class") if isinstance(mapped, dict) else None
    named = str(settings.get("base_model_name_or_path") or "")
    theirs = next((_raw(place / "config.json") for place in places_of_base(adapter, named)), {})
    pairs = (
        (trained_on, ours.get("architectures")),
        (theirs.get("model_type"), [ours.get("model_type")]),
    )
    for found, expected in pairs:
        if found and isinstance(expected, list) and any(expected) and found not in expected:
            why = f"it was trained on {named or found!r}, which is {found}, and not {expected[0]}"
            raise WeightsError(adapter, why, "use the weights that it was trained on")


def places_of_base(adapter: Path, named: str) -> Iterator[Path]:
    """Yield the folders here that an adapter may mean by the name of its base, as peft first."""
    for place in (Path.cwd(), adapter.absolute().parent, adapter.absolute()):
        if named and (place / named).is_dir():
            yield place / named


def _raw(file: Path) -> Mapping[str, Any]:
    """Return the table in a JSON file; an empty one if there is none."""
    try:
        table = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return table if isinstance(table, dict) else {}


def require_tensors_fit(base: Path, adapter: Path, shapes: Mapping[str, Shape]) -> None:
    """Require that every LoRA pair of an adapter has a weight in the base to be added to.

    Args:
        base: The folder of the weights.
        adapter: The adapter's place, for messages.
        shapes: The shapes of its tensors, by peft's names.

    Raises:
        WeightsError: The adapter holds no LoRA pair, or pairs without such a weight.
    """
    pairs = _pairs(shapes)
    if not pairs:
        raise WeightsError(adapter, "it holds no LoRA tensors", "name a folder saved by peft")
    if "quantization_config" in _raw(base / "config.json"):
        return  # their tensors are packed; they are compared when they are loaded
    weights = tensor_shapes(base)
    faults = [fault for module in sorted(pairs) for fault in _faults(module, pairs, weights)]
    if faults:
        why = f"the adapter does not fit {base}: {shortened(faults, '; ')}"
        raise WeightsError(adapter, why, "use the weights that it was trained on")


def n_layers_of(base: Path) -> int:
    """Return how many layers the weights of a Hydra have.

    Raises:
        WeightsError: The weights are not OLMo 2.
    """
    config = _raw(base / "config.json")
    model_type, n_layers = config.get("model_type"), config.get("num_hidden_layers")
    if not isinstance(model_type, str) or not isinstance(n_layers, int):
        why = "its config.json lacks model_type or num_hidden_layers"
        raise WeightsError(base, why, "fetch the folder again")
    if model_type != "olmo2":
        why = f"its model_type is {model_type!r}; loader 'hydra' needs 'olmo2'"
        raise WeightsError(base, why, 'use other weights, or set loader = "hf"')
    return n_layers


def head_depth(keys: Iterable[str], n_layers: int) -> int:
    """Return how many layers a head has by its LoRA tensors: from the first they change on."""
    found = (_HEAD_KEY.fullmatch(key) for key in keys)
    first = min((int(match[1]) for match in found if match), default=n_layers)
    return max(1, n_layers - first)


def head_layers(base: Path, heads_depth: int) -> range:
    """Return the layers that each head of a Hydra has of its own: the last ones of the weights.

    Raises:
        WeightsError: The weights are not OLMo 2, or have no layer left for a trunk.
    """
    n_layers = n_layers_of(base)
    if n_layers <= heads_depth:
        why = f"it has {n_layers} layers; heads of depth {heads_depth} leave none for the trunk"
        raise WeightsError(base, why, _OF_MLPS)
    return range(n_layers - heads_depth, n_layers)


def require_head_fit(base: Path, shard: Path, layers: range) -> None:
    """Require that a folder of peft changes the MLPs of these layers and nothing else.

    Raises:
        WeightsError: It has tensors for other modules, or tensors that fit no weight.
    """
    shapes = tensor_shapes(shard)
    strays = [key for key in sorted(shapes) if not _is_of_head(key, layers)]
    if strays:
        here = f"the MLPs of layers {layers.start} to {layers.stop - 1}"
        why = f"it has LoRA tensors outside {here}: {shortened(strays, '; ')}"
        raise WeightsError(shard, why, _OF_MLPS)
    require_tensors_fit(base, shard, shapes)


def _is_of_head(key: str, layers: range) -> bool:
    match = _HEAD_KEY.fullmatch(key)
    return match is not None and int(match[1]) in layers


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
        if not _OF_EXPERTS.search(module):
            yield f"there is no {module}"
    elif len(weight) == len(pair["A"]) == len(pair["B"]) == 2:  # noqa: PLR2004  # linear layers
        product = (pair["B"][0], pair["A"][1])
        transposed = product[::-1]  # as GPT-2's Conv1D keeps it
        if weight not in {product, transposed} or pair["A"][0] != pair["B"][1]:
            yield f"{module} is {list(weight)}, the adapter's {list(product)}"
