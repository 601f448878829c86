"""Evaluations that ask which of several continuations of a text an entrant finds likeliest."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import starmap
from math import isnan
from typing import ClassVar

from msgspec.structs import replace

from commands.entrants.chats import Chat, recorded_text, user_turn
from commands.evaluating.likelihoods import LikelihoodEvaluation, Results
from commands.evaluating.samples import Inference, Sample
from commands.evaluating.values import (
    ComparisonItem,
    Scores,
    comparison_item,
    reduce_scores,
    require_boolean,
    require_scores,
)
from commands.ports import Continuation, ContinuationLikelihood
from commands.settings.sections import EvaluationOptions, Reduce
from ledger.events.evaluations import Choice, ChoicesObserved, EvaluationKind, Observation
from ledger.events.registration import Entrant
from ledger.identity import Json, digest_of
from projections.evaluations.scores import credit


class PerplexityComparisonEvaluation(LikelihoodEvaluation):
    """Base of multiple-choice evaluations: a prefix, its continuations, and which one is correct.

    The score is 1 if the correct continuation has the highest log-likelihood (the sum over all of
    its tokens), and 1/k if k continuations tie for the highest, the correct one among them. Other
    rules, such as length normalization, are metrics over the same recorded log-likelihoods.
    """

    kind: ClassVar[EvaluationKind] = "comparison"
    asks_unconditional: bool = False  # also compute log-likelihoods without the prefix, for PMI

    @abstractmethod
    def get(self, index: int) -> tuple[str, Sequence[str], int]:
        """Return an item's prefix, its continuations and the index of the correct one."""

    def score(self, correct_flags: Sequence[float]) -> Sequence[float]:
        """Return a score for each sample; `correct_flags` are 1, 0, or 1/k for ties.

        Only calls of the evaluation and `Evaluator.evaluate` use it. The ledger records choices,
        not scores, so the metrics of `tourney` and of results.json do not depend on this method or
        on `higher_is_better`: higher is better for each of them.
        """
        return correct_flags

    def item(self, index: int) -> ComparisonItem:
        """Return an item's prefix, its continuations and the index of the correct one, checked."""
        found = comparison_item(self.get(index), f"{type(self).__name__}.get({index})")
        return self.in_chat(found, index)

    def in_chat(self, item: ComparisonItem, index: int) -> ComparisonItem:
        """Return an item with its prefix as it is recorded if a chat template shows it."""
        messages = self.chat_messages(index)
        return item._replace(prefix=recorded_text(messages)) if messages else item

    def chat_turns(self, index: int) -> Chat:
        """Return the prefix as the user's turn."""
        return user_turn(self.get(index)[0])

    def configured(self, inference: Inference, options: EvaluationOptions) -> Entrant:
        """Return the entrant without its decoding; in a chat, with its system prompt."""
        entrant = super().configured(inference, options)
        if not self.is_asked_in_chat:
            return entrant
        return replace(entrant, options=entrant.chosen.in_evaluations(options.system))

    @property
    def is_asked_in_chat(self) -> bool:
        """Whether a chat template shows the prefix."""
        return self._chat_form not in {None, "none"}

    def settings(self, inference: Inference, options: EvaluationOptions) -> Mapping[str, Json]:
        """Return whether there is a chat, and whether unconditional likelihoods are computed too.

        Raises:
            ConfigurationError: The entrant gives no log-likelihoods.
        """
        says = f"{type(self).__name__}.asks_unconditional is"
        asks = require_boolean(self.asks_unconditional, says)
        unconditional = {"asks_unconditional": True} if asks else {}
        chat = {"is_chat": True} if self.is_asked_in_chat else {}
        return {**super().settings(inference, options), **unconditional, **chat}

    def continuations(self, sample: Sample, entrant: Entrant) -> tuple[Continuation, ...]:
        """Return the continuations after their prefix, then, for PMI, without it."""
        prefix, texts, _ = self.item(sample.index)
        messages = self.chat_messages(sample.index, entrant.chosen.system)
        conditional = (
            Continuation(
                f"{sample.item}:{index}", entrant, prefix, each, bos=self.bos, messages=messages
            )
            for index, each in enumerate(texts)
        )
        if not self.asks_unconditional:
            return tuple(conditional)
        alone = (
            Continuation(f"alone:{digest_of(each)}", entrant, "", each, bos=self.bos)
            for each in texts
        )
        return (*conditional, *alone)

    def observation_of(
        self, sample: Sample, continuations: Sequence[Continuation], results: Results
    ) -> Observation:
        """Return the log-likelihood of each continuation."""
        conditional = self.primary_continuations(continuations)
        _, texts, correct = self.item(sample.index)
        found = [results[continuation.key] for continuation in conditional]
        alone: Sequence[float | None] = [
            results[each.key].log_likelihood for each in continuations[len(conditional) :]
        ]
        likelihoods = zip(texts, found, alone or [None] * len(found), strict=True)
        return ChoicesObserved(
            choices=tuple(starmap(_choice, likelihoods)),
            correct=correct,
            n_context_tokens=max(len(each.context_ids) for each in found),
            is_truncated=any(each.is_truncated for each in found),
        )

    def primary_continuations(
        self, continuations: Sequence[Continuation]
    ) -> Sequence[Continuation]:
        """Return the continuations after their prefix."""
        return (
            continuations[: len(continuations) // 2] if self.asks_unconditional else continuations
        )

    def reduce(self, observations: Sequence[Observation | None], reduce: Reduce) -> float | Scores:
        """Return the mean or the sum of the scores, or each."""
        earned = [
            credit([choice.log_likelihood for choice in each.choices], each.correct)
            if isinstance(each, ChoicesObserved)
            else float("nan")
            for each in observations
        ]
        known = [flag for flag in earned if not isnan(flag)]
        what = f"{type(self).__name__}.score gives"
        scores = iter(require_scores(self.score(known), len(known), what))
        every = [flag if isnan(flag) else next(scores) for flag in earned]
        return reduce_scores(every, reduce)


def _choice(
    continuation: str, result: ContinuationLikelihood, unconditional: float | None
) -> Choice:
    return Choice(
        log_likelihood=result.log_likelihood,
        n_tokens=len(result.text_ids),
        n_bytes=len(continuation.encode()),
        n_chars=len(continuation),
        is_greedy=result.predicted_ids == result.text_ids,
        unconditional=unconditional,
    )
