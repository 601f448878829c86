"""Define each metric as a ratio of two sums over samples.

Observations are recorded and metrics are not, so a new or changed metric applies to everything ever
observed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import comb, log
from typing import Final, NamedTuple, TypeVar, assert_never

import numpy as np

from ledger.events.evaluations import (
    AnswerObserved,
    Choice,
    ChoicesObserved,
    DocumentObserved,
    EvaluationPlanned,
    PredictionObserved,
    SampleObserved,
)
from projections.intervals import Floats, RatioTerms, Scale
from projections.verdicts.parsers import holds_gold, is_gold


def credit(weights: Sequence[float], correct: int) -> float:
    """Return 1 if the correct choice has the highest score, 1/k if k choices share it, else 0.

    Exactly equal scores are a tie: taking the first would reward its position.
    """
    heaviest = max(weights)
    n_heaviest = sum(weight == heaviest for weight in weights)
    return 1.0 / n_heaviest if weights[correct] == heaviest else 0.0


_NATS_PER_BIT: Final = log(2)

Shape = TypeVar("Shape")


class MetricRatio(NamedTuple):
    """A metric, as the terms of a ratio of sums."""

    name: str
    unit: str
    terms: RatioTerms
    scale: Scale = "share"
    higher_is_better: bool = True


def metric_ratios(
    plan: EvaluationPlanned,
    samples: Sequence[SampleObserved],
    judged: Sequence[float | None],
) -> tuple[MetricRatio, ...]:
    """Return the metrics of samples, the primary one first: a judge's, if one scores answers.

    Args:
        plan: Says the kind, whether a higher own score is better, and whether a judge scores.
        samples: Observations that fit that kind: see `mismatch_of`.
        judged: The judge's score of each; None: there is none yet, or none could be read.
    """
    if plan.scored_by:
        scale = scale_of([score for score in judged if score is not None])
        by_judge = MetricRatio("judged", "score", mean_terms(judged), scale)
        return (by_judge, *_own_ratios(plan, samples))
    return _own_ratios(plan, samples)


def _own_ratios(
    plan: EvaluationPlanned, samples: Sequence[SampleObserved]
) -> tuple[MetricRatio, ...]:
    match plan.kind:
        case "comparison":
            return (*_of_choices(_shaped(samples, ChoicesObserved)),)
        case "perplexity":
            return _of_documents(_shaped(samples, DocumentObserved))
        case "rollout":
            return (*_of_answers(plan, samples),)
        case "encoding":
            return _of_predictions(plan, _shaped(samples, PredictionObserved))
        case _:
            assert_never(plan.kind)


def _shaped(samples: Sequence[SampleObserved], shape: type[Shape]) -> list[Shape]:
    return [sample.observation for sample in samples if isinstance(sample.observation, shape)]


def _of_choices(observed: Sequence[ChoicesObserved]) -> Iterator[MetricRatio]:
    """Score choices by log-likelihood: in total, per token, character and byte, and as information.

    The last is minus the unconditional one (pointwise mutual information), if it was observed. A
    lone text is right if each of its tokens is the likeliest: as the only choice it always wins.
    """
    if observed and all(len(choices.choices) == 1 for choices in observed):
        yield from _of_lone_texts(observed)
        return
    weights: dict[str, Callable[[Choice], float]] = {
        "acc": lambda choice: choice.log_likelihood,
        "acc_tok": lambda choice: choice.log_likelihood / choice.n_tokens,
        "acc_norm": lambda choice: choice.log_likelihood / choice.n_chars,
        "acc_bytes": lambda choice: choice.log_likelihood / choice.n_bytes,
    }
    for name, weight in weights.items():
        shares = (credit([*map(weight, choices.choices)], choices.correct) for choices in observed)
        yield MetricRatio(name, "share", mean_terms(shares))
    if any(choice.unconditional is not None for choices in observed for choice in choices.choices):
        yield MetricRatio("acc_pmi", "share", mean_terms(map(_pmi_credit, observed)))
    is_greedy = (choices.choices[choices.correct].is_greedy for choices in observed)
    yield MetricRatio("exact_match", "share", mean_terms(is_greedy))


def _of_lone_texts(observed: Sequence[ChoicesObserved]) -> tuple[MetricRatio, ...]:
    """Return how often a text is what greedy decoding gives, and exp(mean nats of a text).

    As `acc` and `perplexity` of lm-evaluation-harness's loglikelihood tasks, such as LAMBADA.
    """
    nats = mean_terms(-choices.choices[0].log_likelihood for choices in observed)
    return (
        MetricRatio(
            "acc", "share", mean_terms(choices.choices[0].is_greedy for choices in observed)
        ),
        MetricRatio("perplexity", "per text", nats, "exponential", False),
    )


def _pmi_credit(observed: ChoicesObserved) -> float | None:
    gains = [
        choice.log_likelihood - choice.unconditional
        for choice in observed.choices
        if choice.unconditional is not None
    ]
    return credit(gains, observed.correct) if len(gains) == len(observed.choices) else None


def _of_documents(observed: Sequence[DocumentObserved]) -> tuple[MetricRatio, ...]:
    """Sum over all documents, so each token, byte or word counts the same.

    Bits per byte come first, as they do not depend on the tokenizer.
    """
    nats = _floats(-document.log_likelihood for document in observed)
    n_bytes = _floats(document.n_bytes for document in observed)
    bits = RatioTerms(nats / _NATS_PER_BIT, n_bytes)
    by_token = RatioTerms(nats, _floats(document.n_tokens for document in observed))
    by_word = RatioTerms(nats, _floats(document.n_words for document in observed))
    return (
        MetricRatio("bits_per_byte", "bits per byte", bits, "plain", False),
        MetricRatio("perplexity", "per token", by_token, "exponential", False),
        MetricRatio("word_perplexity", "per word", by_word, "exponential", False),
        MetricRatio("byte_perplexity", "per byte", RatioTerms(nats, n_bytes), "exponential", False),
    )


def _of_answers(
    plan: EvaluationPlanned, samples: Sequence[SampleObserved]
) -> Iterator[MetricRatio]:
    """Compare cleaned and expected answers by words, as verdicts/parsers.py does."""
    observed = _shaped(samples, AnswerObserved)
    yield _own_score(plan, [answer.score for answer in observed])
    matches = mean_terms(_compared(answer, is_gold) for answer in observed)
    yield MetricRatio("exact_match", "share", matches)
    held = mean_terms(_compared(answer, holds_gold) for answer in observed)
    yield MetricRatio("containment", "share", held)
    if plan.higher_is_better and _are_binary([answer.score for answer in observed]):
        yield from _passing(samples, plan.n_samples)
    cut = mean_terms(answer.finish_reason == "length" for answer in observed)
    yield MetricRatio("length_limited", "share", cut, "share", False)


def _compared(answer: AnswerObserved, compare: Callable[[str, str], bool | None]) -> bool | None:
    return None if answer.is_redacted else compare(answer.cleaned, answer.expected)


def _of_predictions(
    plan: EvaluationPlanned, observed: Sequence[PredictionObserved]
) -> tuple[MetricRatio, ...]:
    """Compare token ids: the last of each text, and all of them, each counting the same."""
    n_right = _floats(
        sum(a == b for a, b in zip(prediction.predicted, prediction.target, strict=False))
        for prediction in observed
    )
    n_tokens = _floats(len(prediction.target) for prediction in observed)
    last = mean_terms(
        None if prediction.is_redacted else prediction.predicted[-1:] == prediction.target[-1:]
        for prediction in observed
    )
    return (
        _own_score(plan, [prediction.score for prediction in observed]),
        MetricRatio("last_token", "share", last),
        MetricRatio("tokens", "share", RatioTerms(n_right, n_tokens)),
    )


def _own_score(plan: EvaluationPlanned, scores: Sequence[float | None]) -> MetricRatio:
    """Return the mean of the evaluation's own score.

    A score that needs all samples is known when the plan is completed.
    """
    scale = scale_of([score for score in scores if score is not None])
    return MetricRatio("score", "score", mean_terms(scores), scale, plan.higher_is_better)


def scale_of(scores: Iterable[float]) -> Scale:
    """Return how a mean of scores behaves; that of zeros and ones is a share."""
    return "share" if _are_binary(scores) else "plain"


def _are_binary(scores: Iterable[float | None]) -> bool:
    return all(score in {0.0, 1.0} for score in scores)


def _passing(samples: Sequence[SampleObserved], n_samples: int) -> Iterator[MetricRatio]:
    """Estimate pass@k, the chance that one of k tries at an item is correct, for k = 2, 4, 8 ...

    For n tries at an item, c of them correct, 1 - C(n - c, k) / C(n, k) (Chen et al. 2021, eq. 1);
    each item counts the same, and items with fewer than k tries are left out.
    """
    n_tries: Counter[str] = Counter(sample.item for sample in samples)
    n_right: Counter[str] = Counter(
        sample.item
        for sample in samples
        if isinstance(sample.observation, AnswerObserved) and sample.observation.score
    )
    k = 2
    while k <= n_samples:
        share = _floats(
            float(n_tries[sample.item] >= k) / n_tries[sample.item] for sample in samples
        )
        fails = _floats(
            comb(n_tries[sample.item] - n_right[sample.item], k)
            / max(1, comb(n_tries[sample.item], k))
            for sample in samples
        )
        yield MetricRatio(f"pass@{k}", "share", RatioTerms((1 - fails) * share, share))
        k *= 2


def mean_terms(values: Iterable[float | None]) -> RatioTerms:
    """Return the mean over the samples that have a value."""
    every = [*values]
    return RatioTerms(
        _floats(0.0 if value is None else value for value in every),
        _floats(value is not None for value in every),
    )


def _floats(values: Iterable[float]) -> Floats:
    return np.fromiter(values, dtype=np.float64)
