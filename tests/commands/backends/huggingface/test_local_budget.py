"""The tokens of a batch follow from free memory, and nothing that is said follows from them."""

from collections.abc import Callable
from typing import cast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import DynamicCache, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.cache_utils import DynamicLayer

from commands.backends.huggingface.local import batch_budget
from commands.backends.hydra.decoding import HydraSteps
from commands.backends.hydra.weights import load_hydra
from commands.backends.weights.loaded import LoadedWeights, as_loaded
from commands.backends.weights.sampling import SamplingSettings
from commands.ports import GenerationTask
from ledger.events.registration import Entrant
from tests.support.weights.families import family_model
from tests.support.weights.hydra import N_HEADS, HeadRoles, HydraFiles, head_row, hydra_entrant
from tests.support.weights.tiny import tiny

CPU = torch.device("cpu")
LEAST, MOST = 1_024, 8_192

Build = Callable[..., Entrant]
MakeTasks = Callable[..., list[GenerationTask]]


@pytest.fixture(scope="module")
def loaded(tokenizer: PreTrainedTokenizerFast) -> LoadedWeights:
    """Give weights in memory."""
    return as_loaded(tiny(LlamaForCausalLM, seed=0), tokenizer)


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 40))
def test_more_free_memory_never_makes_a_smaller_batch(
    loaded: LoadedWeights, free: int, more: int
) -> None:
    """It fits, unless it is the smallest; a little memory more or less changes nothing."""
    n_tokens = batch_budget(None, loaded, lambda _: free)

    assert n_tokens == LEAST or n_tokens * loaded.token_bytes <= free
    assert n_tokens in {1 << n for n in range(10, 14)}
    assert n_tokens <= batch_budget(None, loaded, lambda _: free + more) <= MOST


def test_the_number_that_the_user_names_is_taken(loaded: LoadedWeights) -> None:
    """It is theirs to know what else the machine does."""
    assert batch_budget(77, loaded, lambda _: 0) == 77


def n_bytes(caches: DynamicCache) -> int:
    """Count the bytes of all keys and values."""
    layers = (cast("DynamicLayer", each) for each in caches.layers)
    return sum(
        cast("torch.Tensor", each).nbytes for layer in layers for each in (layer.keys, layer.values)
    )


@pytest.mark.parametrize("family", ["bloom", "gemma2", "gpt_oss"])
def test_a_token_takes_at_least_its_keys_and_values_twice(
    family: str, tokenizer: PreTrainedTokenizerFast
) -> None:
    """Families name their sizes differently, and memory that is not counted runs out."""
    model, n_tokens = family_model(family), 6
    cache = DynamicCache()
    model(torch.arange(n_tokens)[None], past_key_values=cache, use_cache=True)

    counted = as_loaded(model, tokenizer).token_bytes

    assert 2 * n_bytes(cache) / n_tokens <= counted <= 20 * n_bytes(cache) / n_tokens


@torch.inference_mode()
def test_a_hydra_keeps_a_token_once_for_each_head(hydra_files: HydraFiles) -> None:
    """Its caches are many times those of the plain weights."""
    who = hydra_entrant(hydra_files)
    assert who.hydra is not None
    hydra = load_hydra(who, who.hydra, CPU)
    row = head_row(range(6), HeadRoles(0, tuple(range(1, N_HEADS))), 0)
    steps = HydraSteps(hydra.model, [row], SamplingSettings(), 1.0)
    steps.next_tokens()
    kept = n_bytes(steps.cache)

    assert 2 * kept / 6 <= hydra.token_bytes <= 20 * kept / 6
