"""Evaluation of which continuation of a text an entrant finds likeliest."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from commands.evaluating.evaluation import Scores, reduced
from commands.evaluating.likelihoods import ReadingEvaluation, Results
from commands.evaluating.samples import Inference, Sample
from commands.evaluating.user_code import text, whole
from commands.ports import Continuation, ContinuationLikelihood
from commands.settings.sections import EvaluationOptions, Reduce
from ledger.events.evaluations import Choice, ChoicesObserved, EvaluationKind, Observation
from ledger.events.registration import Entrant
from ledger.identity import Json, digest_of
from projections.evaluations.scores import credit


class PerplexityComparisonEvaluation(ReadingEvaluation):
    """An item is a prefix, continuations of it, and which of them is right.

    Each continuation is weighed whole, from its first token on. The score is 1 where the right one
    is likeliest by the sum of its tokens' log-likelihoods; of k that are equally likely, the right
    one among them, it is 1/k. Other rules are metrics: they need no further reading.
    """

    kind: ClassVar[EvaluationKind] = "comparison"
    asks_unconditional: bool = False  # weigh continuations behind no prefix too, for PMI

    @abstractmethod
    def get(self, index: int) -> tuple[str, Sequence[str], int]:
        """Return an item's prefix, its continuations and the index of the right one."""

    def score(self, correct_flags: Sequence[float]) -> Sequence[float]:
        """Return a score for each sample, from the credit that its choice earns.

        Only a call of the evaluation itself and `Evaluator.evaluate` ask for it. Choices are
        recorded, not scores, and the metrics of the ledger and of results.json do not depend on
        this; nor on `higher_is_better`, as more is better of each of them.
        """
        return correct_flags

    def content(self, index: int) -> Json:
        """Return the prefix, the continuations and which is right.

        Raises:
            TypeError: `get` gives something of another type.
            ValueError: None of the continuations is the right one, or UTF-8 cannot say one.
        """
        prefix, continuations, correct = self._item(index)
        return [prefix, list(continuations), correct]

    def settings(self, inference: Inference, terms: EvaluationOptions) -> Mapping[str, Json]:
        """Return whether continuations are weighed alone too, if they are.

        Raises:
            ConfigurationError: The entrant gives no log-likelihoods.
        """
        asked = {"asks_unconditional": True} if self.asks_unconditional else {}
        return {**super().settings(inference, terms), **asked}

    def passages(self, sample: Sample, entrant: Entrant) -> tuple[Continuation, ...]:
        """Return the continuations behind their prefix, then, where asked, behind nothing."""
        prefix, continuations, _ = self._item(sample.index)
        conditional = (
            Continuation(f"{sample.item}:{place}", entrant, prefix, each)
            for place, each in enumerate(continuations)
        )
        if not self.asks_unconditional:
            return tuple(conditional)
        return (*conditional, *(_unconditional(entrant, each) for each in continuations))

    def observed(
        self, sample: Sample, passages: Sequence[Continuation], read: Results
    ) -> Observation:
        """Return how likely each continuation is."""
        conditional = self.shown(passages)
        _, continuations, correct = self._item(sample.index)
        weighed = [read[passage.key] for passage in conditional]
        apart: list[float | None] = [
            read[passage.key].log_likelihood for passage in passages[len(conditional) :]
        ]
        return ChoicesObserved(
            choices=tuple(
                _choice(continuation, each, unconditional)
                for continuation, each, unconditional in zip(
                    continuations, weighed, apart or [None] * len(weighed), strict=True
                )
            ),
            correct=correct,
            n_context_tokens=max(len(each.context_ids) for each in weighed),
            is_truncated=any(each.is_truncated for each in weighed),
        )

    def shown(self, passages: Sequence[Continuation]) -> Sequence[Continuation]:
        """Return the continuations behind their prefix."""
        return passages[: len(passages) // 2] if self.asks_unconditional else passages

    def reduce(self, observations: Sequence[Observation | None], reduce: Reduce) -> float | Scores:
        """Return the mean or the sum of the scores, or each."""
        earned = [
            credit([choice.log_likelihood for choice in each.choices], each.correct)
            if isinstance(each, ChoicesObserved)
            else float("nan")
            for each in observations
        ]
        return reduced(self.score(earned), reduce)

    def _item(self, index: int) -> tuple[str, tuple[str, ...], int]:
        prefix, continuations, correct = self.get(index)
        get = f"{type(self).__name__}.get({index})"
        choices = tuple(text(each, f"{get} gives the continuation") for each in continuations)
        right = whole(correct, f"{get} calls the right one")
        if not 0 <= right < len(choices):
            raise ValueError(
                f"{get} calls continuation {right} the right one, counted from 0, of {len(choices)}"
            )
        return text(prefix, f"{get} gives the prefix"), choices, right


def _unconditional(entrant: Entrant, continuation: str) -> Continuation:
    return Continuation(f"alone:{digest_of(continuation)}", entrant, "", continuation)


def _choice(continuation: str, read: ContinuationLikelihood, unconditional: float | None) -> Choice:
    return Choice(
        log_likelihood=read.log_likelihood,
        n_tokens=len(read.text_ids),
        n_bytes=len(continuation.encode()),
        n_chars=len(continuation),
        is_greedy=read.predicted_ids == read.text_ids,
        unconditional=unconditional,
    )
