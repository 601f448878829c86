"""Passages, readers, and what they read by hand: alone, without padding, in float64."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import torch
from transformers import PreTrainedModel

from commands.backends.huggingface.local import Load, LocalModels
from commands.ports import Continuation, ContinuationLikelihood, LikelihoodFailure
from ledger.events.registration import Entrant
from tests.support.weights.loads import kept

ENOUGH = 16 * 160  # tokens, for all passages of a test at once


def passages_of(
    entrant: Entrant, *pairs: tuple[str, str], rolls: bool = False
) -> list[Continuation]:
    """Return passages of contexts and texts, with keys by place."""
    return [Continuation(str(n), entrant, *pair, rolls) for n, pair in enumerate(pairs)]


def results(
    passages: Sequence[Continuation], batch_tokens: int | None = ENOUGH, load: Load = kept
) -> list[ContinuationLikelihood | LikelihoodFailure]:
    """Return what a new reader makes of passages, in their order."""
    reader = LocalModels(batch_tokens, device="cpu", load=load)
    finished = [result for batch in reader.log_likelihoods(passages) for result in batch]
    assert sorted(result.key for result in finished) == sorted(p.key for p in passages)
    by_key = {result.key: result for result in finished}
    return [by_key[passage.key] for passage in passages]


def readings(
    passages: Sequence[Continuation], batch_tokens: int | None = ENOUGH, load: Load = kept
) -> list[ContinuationLikelihood]:
    """Return them where every passage is read."""
    made = results(passages, batch_tokens, load)
    read = [result for result in made if isinstance(result, ContinuationLikelihood)]
    assert read == made
    return read


def facts(read: Iterable[ContinuationLikelihood]) -> list[ContinuationLikelihood]:
    """Return what does not waver by the last digits of a float32."""
    return [replace(each, log_likelihood=0.0) for each in read]


def log_likelihoods(read: Iterable[ContinuationLikelihood]) -> list[float]:
    """Return what does."""
    return [each.log_likelihood for each in read]


@torch.inference_mode()
def log_p_by_hand(model: PreTrainedModel, ids: Sequence[int]) -> torch.Tensor:
    """Return (T, V) what is expected behind each token, of weights in float64."""
    logits: torch.Tensor = model(torch.tensor([ids]), use_cache=False).logits
    return logits[0].log_softmax(dim=-1)


def likelihood_by_hand(model: PreTrainedModel, read: ContinuationLikelihood) -> float:
    """Return how likely the text is behind its context, all read in one go."""
    log_p = log_p_by_hand(model, [*read.context_ids, *read.text_ids])
    before = len(read.context_ids) - 1
    return sum(float(log_p[before + n, token]) for n, token in enumerate(read.text_ids))
