"""Loaders of weights that are changed, watched, too large, or say a text by heart."""

import copy
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Final

import torch
from transformers import (
    GenerationConfig,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from commands.backends.huggingface.local import Load, load_entrant
from commands.backends.loads import load_key
from commands.backends.weights.loaded import LoadedWeights, load_weights
from ledger.events.registration import Entrant

TILDE = 5 + ord("~") - ord("!")  # its token: the alphabet stands behind the special ones

IsTooMuch = Callable[[torch.Tensor], bool]  # of (R, S) tokens

_KEPT: Final[dict[Hashable, LoadedWeights]] = {}


def kept(entrant: Entrant, device: torch.device) -> LoadedWeights:
    """Load an entrant, unless its files are loaded already: that takes as long as an answer."""
    key = load_key(entrant), device
    if key not in _KEPT:  # copied, as all copies lie alike in memory: to the last bit they agree
        _KEPT[key] = _copied(load_entrant(entrant, device))
    return _KEPT[key]


def kept_copy(entrant: Entrant, device: torch.device) -> LoadedWeights:
    """Return what may be changed of it."""
    return _copied(kept(entrant, device))


def _copied(loaded: LoadedWeights) -> LoadedWeights:
    return loaded._replace(model=copy.deepcopy(loaded.model))


def model_of(loaded: LoadedWeights) -> PreTrainedModel:
    """Return the loaded model as transformers knows it."""
    assert isinstance(loaded.model, PreTrainedModel)
    return loaded.model


def changed(change: Callable[[PreTrainedModel], object]) -> Load:
    """Return a loader of weights that are changed once they are loaded."""

    def load(entrant: Entrant, device: torch.device) -> LoadedWeights:
        loaded = kept_copy(entrant, device)
        change(model_of(loaded))
        return loaded

    return load


def noting_alive(n_alive: list[int]) -> Load:
    """Return a loader that notes each time how many of its loads are still in memory."""
    earlier: list[weakref.ref[PreTrainedModel]] = []

    def load(entrant: Entrant, device: torch.device) -> LoadedWeights:
        n_alive.append(sum(reference() is not None for reference in earlier))
        loaded = load_weights(entrant, device)
        earlier.append(weakref.ref(model_of(loaded)))
        return loaded

    return load


def running_out(is_too_much: IsTooMuch) -> Load:
    """Return a loader of weights that run out of memory, as CUDA does, where it is too much."""

    def refuse(_: object, args: tuple[torch.Tensor, ...], settings: dict[str, object]) -> None:
        tokens = args[0] if args else settings["input_ids"]
        assert isinstance(tokens, torch.Tensor)
        if is_too_much(tokens):
            raise torch.OutOfMemoryError

    return changed(lambda model: model.register_forward_pre_hook(refuse, with_kwargs=True))


def forget_tilde(model: PreTrainedModel) -> None:
    """Make what is known of "~" no numbers."""
    model.get_input_embeddings().get_parameter("weight").data[TILDE] = torch.nan


N_POSITIONS = 96


def reciting(
    tokenizer: PreTrainedTokenizerFast,
    said: Sequence[int],
    *,
    behind: int,
    end_ids: frozenset[int] = frozenset({0}),
) -> LoadedWeights:
    """Return weights that say these tokens, whatever they read, behind so many tokens.

    Every position has a dimension of its own, and nothing else counts.
    """
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_embd=N_POSITIONS,
        n_positions=N_POSITIONS,
        n_layer=1,
        n_head=1,
        tie_word_embeddings=False,
    )
    with torch.random.fork_rng(devices=[]):
        model = GPT2LMHeadModel(config).train(mode=False)
    for tensor in model.parameters():
        tensor.data.zero_()
    model.transformer.wpe.weight.data = torch.eye(N_POSITIONS)
    model.transformer.ln_f.weight.data.fill_(1)
    for position, token in enumerate(said, behind - 1):
        model.lm_head.weight.data[token, position] = 10
    model.generation_config = GenerationConfig.from_dict({})
    return LoadedWeights(model, tokenizer, torch.device("cpu"), end_ids, N_POSITIONS)
