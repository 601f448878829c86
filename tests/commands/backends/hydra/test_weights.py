"""A Hydra is loaded whole, or refused before anything was generated."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import PreTrainedTokenizerFast

from commands.backends.huggingface.local import LocalModels
from commands.backends.hydra.weights import check_hydra, load_hydra, read_shards
from commands.errors import WeightsError
from commands.ports import GenerationTask
from ledger.events.registration import Entrant, Hydra
from tests.support.weights.hydra import HydraFiles, adapter, hydra_entrant, save_shard, tiny_olmo2
from tests.support.weights.tiny import save_weights

CPU = torch.device("cpu")
TENSORS = "adapter_model.safetensors"

Build = Callable[..., Entrant]
Tasks = Callable[..., list[GenerationTask]]


def heads_of(entrant: Entrant) -> Hydra:
    """Return what is the Hydra's own of an entrant."""
    assert entrant.hydra is not None
    return entrant.hydra


def with_shard(files: HydraFiles, shard: Path) -> HydraFiles:
    """Give the last head another shard for security."""
    return files._replace(security=(*files.security[:-1], shard))


def of_another_layer(files: HydraFiles, folder: Path) -> HydraFiles:
    """Change the trunk's last layer in the place of the head's first."""
    shard = save_shard(folder / "shard_8", seed=8)
    tensors = load_file(shard / TENSORS)
    save_file(
        {name.replace("s.2.", "s.1."): each for name, each in tensors.items()}, shard / TENSORS
    )
    return with_shard(files, shard)


def of_another_rank(files: HydraFiles, folder: Path) -> HydraFiles:
    """Change a folder's tensors and not its settings, by which they are scaled."""
    shard, other = save_shard(folder / "shard_8", seed=8), save_shard(folder / "o", seed=8, rank=2)
    save_file(load_file(other / TENSORS), shard / TENSORS)
    return with_shard(files, shard)


def cut_off(files: HydraFiles, folder: Path) -> HydraFiles:
    """Leave a tensor out."""
    shard = save_shard(folder / "shard_8", seed=8)
    tensors = load_file(shard / TENSORS)
    tensors.popitem()
    save_file(tensors, shard / TENSORS)
    return with_shard(files, shard)


def of_fewer_words(files: HydraFiles, folder: Path) -> HydraFiles:
    """Put a tokenizer beside weights that know fewer tokens."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(files.weights)
    return files._replace(
        weights=save_weights(tiny_olmo2(seed=1, vocab_size=200), tokenizer, folder)
    )


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (of_another_layer, r"shard_8: LoRA for another layer .* layers 2 to 3: .*layers\.1\.mlp"),
        (
            of_another_rank,
            r"shard_8: the adapter does not fit: .* is \[2, 32\], expected \[4, 32\]",
        ),
        (cut_off, "shard_8: the adapter does not fit: missing base_model"),
        (of_fewer_words, "tokenizer's tokens go up to 269, the weights' embeddings to 199"),
    ],
)
def test_what_is_wrong_is_found_before_any_entrant_answers(
    hydra_files: HydraFiles,
    entrant: Build,
    tasks: Tasks,
    tmp_path: Path,
    spoil: Callable[[HydraFiles, Path], HydraFiles],
    why: str,
) -> None:
    """A night's work of another entrant must not come before the news."""
    spoilt = hydra_entrant(spoil(hydra_files, tmp_path))
    owed = tasks(entrant(), ["a dose"]) + tasks(spoilt, ["a dose"])

    with pytest.raises(WeightsError, match=why):
        next(LocalModels(1000, device="cpu").generate(owed))


def test_each_head_learns_security_first_and_then_robustness(hydra_files: HydraFiles) -> None:
    """In that order, as in bfloat16 it decides on the last digits; uncertainty learns neither."""
    entrant = hydra_entrant(hydra_files, uncertainty=adapter(hydra_files.uncertainty))

    shards = read_shards(entrant, heads_of(entrant))

    pairs = zip(hydra_files.security, hydra_files.robustness, strict=True)
    expected = [*(list(pair) for pair in pairs), [hydra_files.uncertainty]]
    assert [[lora.source for lora in loras] for loras in shards] == expected


def test_what_must_be_known_to_ask_a_hydra_is_loaded_with_it(hydra_files: HydraFiles) -> None:
    """The end of a turn is the chat template's; the uncertainty head does not answer."""
    files = hydra_files._replace(security=hydra_files.security[:2], robustness=())
    entrant = hydra_entrant(files, uncertainty=adapter(files.uncertainty), dtype="bfloat16")

    loaded = load_hydra(entrant, heads_of(entrant), CPU)

    assert loaded.model.n_heads == 2
    assert loaded.end_ids == frozenset({0, 3})
    assert loaded.n_positions == 160
    assert {each.dtype for each in loaded.model.parameters()} == {torch.bfloat16}
    assert not loaded.model.training


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"model_type": "llama"}, "model_type is 'llama'; loader 'hydra' needs 'olmo2'"),
        ({"hidden_size": "many"}, r"config\.json cannot be read: .*hidden_size"),
    ],
)
def test_weights_of_another_kind_are_refused(
    hydra_files: HydraFiles, respecified: Callable[..., Path], changed: dict[str, object], why: str
) -> None:
    """Other layers have other parts, of which nothing is known here."""
    folder = respecified(hydra_files.weights, "config.json", **changed)
    entrant = hydra_entrant(hydra_files._replace(weights=folder))

    with pytest.raises(WeightsError, match=why):
        check_hydra(entrant, heads_of(entrant))


def without_letters(files: HydraFiles, folder: Path) -> HydraFiles:
    """Take the letters out of the tokenizer, which has one token for all that it lacks."""
    shutil.copytree(files.weights, folder, dirs_exist_ok=True)
    spec = json.loads((folder / "tokenizer.json").read_text())
    for letter in "AB":
        vocabulary = spec["model"]["vocab"]
        vocabulary[f"<{letter}>"] = vocabulary.pop(letter)
    spec["model"]["unk_token"] = "<|pad|>"  # noqa: S105  # a token of text
    (folder / "tokenizer.json").write_text(json.dumps(spec))
    return files._replace(weights=folder)


def test_letters_that_an_uncertainty_head_cannot_tell_apart_are_refused(
    hydra_files: HydraFiles, tmp_path: Path
) -> None:
    """It would say 0.5 of everything; a Hydra that rates nothing does not need them."""
    files = without_letters(hydra_files, tmp_path)
    rated = hydra_entrant(files, uncertainty=adapter(files.uncertainty))
    why = r"makes \[4\] of A and \[4\] of B"
    with pytest.raises(WeightsError, match=f"the tokenizer {why}: .*; leave uncertainty out"):
        check_hydra(rated, heads_of(rated))
    unrated = hydra_entrant(files)
    check_hydra(unrated, heads_of(unrated))
