"""Random texts, and ways to weigh them: the reader's, and those it is measured against."""

import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import partial
from math import exp, log
from typing import Final, TypeAlias, cast

import numpy as np
import torch
from transformers import Olmo2ForCausalLM, PreTrainedTokenizerBase

from commands.backends.huggingface.reader import (
    PrefixGroup,
    compute_groups,
    group_by_length,
    group_by_prefix,
)
from commands.backends.weights.batching import BatchQueue
from commands.backends.weights.likelihoods import HfBatchLikelihoods, WindowLikelihood
from commands.backends.weights.loaded import LoadedWeights, TextModel
from commands.backends.weights.windows import Window

N_TOKENS: Final = 256  # of the smallest vocabulary that is measured
N_CHOICES: Final = 4
CHOICE_LENGTHS: Final = (1, 12)  # tokens, at least and at most
SHORTEST: Final = 8  # tokens

Labelled = Mapping[Window, Hashable]


def questions(rng: np.random.Generator, n_questions: int, *, n_context: int) -> Labelled:
    """Return each question's choices, labelled with the question."""
    labelled = {}
    for question in range(n_questions):
        context = _ids(rng, n_context)
        for _ in range(N_CHOICES):
            choice = _ids(rng, int(rng.integers(*CHOICE_LENGTHS, endpoint=True)))
            labelled[Window(context + choice, n_context)] = question
    return labelled


def documents(rng: np.random.Generator, n_documents: int, longest: int) -> Labelled:
    """Return texts with labels of their own: as many twice as long as there are half as long."""
    spread = log(longest / SHORTEST)
    lengths = [round(SHORTEST * exp(rng.uniform(0.0, spread))) for _ in range(n_documents)]
    return {Window(_ids(rng, n + 1), 1): place for place, n in enumerate(lengths)}


def _ids(rng: np.random.Generator, n_ids: int) -> tuple[int, ...]:
    return tuple(rng.integers(N_TOKENS, size=n_ids).tolist())


Way: TypeAlias = Callable[[Labelled], Iterator[tuple[PrefixGroup, ...]]]
"""Puts windows into batches."""


def rate(model: Olmo2ForCausalLM, labelled: Labelled, way: Way) -> float:
    """Weigh windows; return how many a second."""
    began = time.perf_counter()
    n_weighed = len(weigh(model, labelled, way))
    return n_weighed / (time.perf_counter() - began)


def weigh(model: Olmo2ForCausalLM, labelled: Labelled, way: Way) -> dict[Window, WindowLikelihood]:
    """Weigh windows."""
    no_tokenizer = cast("PreTrainedTokenizerBase", None)  # there are tokens already
    cpu = torch.device("cpu")
    loaded = LoadedWeights(cast("TextModel", model), no_tokenizer, cpu, frozenset(), None)
    weighed: dict[Window, WindowLikelihood] = {}
    for batch in way(labelled):
        weighed |= compute_groups(partial(HfBatchLikelihoods, loaded), batch)
    return weighed


def together(batch_tokens: int, labelled: Labelled) -> Iterator[tuple[PrefixGroup, ...]]:
    """Read what choices have in common once, as the reader does."""
    return _queued(batch_tokens, group_by_prefix(labelled, may_share=True))


def one_by_one(labelled: Labelled) -> Iterator[tuple[PrefixGroup, ...]]:
    """Read each window by itself, in one forward pass, as a loop over choices does."""
    return ((bundle,) for bundle in group_by_prefix(labelled, may_share=False))


def by_length(batch_tokens: int, labelled: Labelled) -> Iterator[tuple[PrefixGroup, ...]]:
    """Read windows beside those of their length, as the reader does."""
    return _queued(batch_tokens, group_by_prefix(labelled, may_share=False))


def arriving(batch_tokens: int, labelled: Labelled) -> Iterator[tuple[PrefixGroup, ...]]:
    """Read windows in their order, in batches of as many tokens, padding included."""
    batch: tuple[PrefixGroup, ...] = ()
    for bundle in group_by_prefix(labelled, may_share=False):
        larger = (*batch, bundle)
        if len(larger) * max(each.n_tokens for each in larger) > batch_tokens:
            yield batch
            larger = (bundle,)
        batch = larger
    yield batch


def _queued(batch_tokens: int, bundles: list[PrefixGroup]) -> Iterator[tuple[PrefixGroup, ...]]:
    for alike in group_by_length(bundles):
        queue = BatchQueue(alike, lambda bundle: bundle.n_tokens, batch_tokens)
        yield from iter(queue.take, ())
