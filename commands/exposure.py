"""What unanswered requests may have cost, where nobody knows whether they were billed."""

from collections.abc import Mapping
from functools import cached_property

from commands.pricing import Pricing
from commands.recorder import Recorder
from ledger.events.judging import JudgeQueryFailed
from ledger.events.registration import JudgeSettings
from ledger.identity import Digest
from projections.matches import match_of, pairings
from projections.spend import may_have_been_billed


class Exposure:
    """Adds up, at the worst, a judge's failures that may have been billed, as they are recorded."""

    def __init__(self, recorder: Recorder, judge: JudgeSettings, pricing: Pricing) -> None:
        self._recorder, self._judge, self._pricing = recorder, judge, pricing
        self._position = 0  # the last that is counted
        self._usd = 0.0

    def usd(self) -> float:
        """Return the dollars of all that is on record, by this process or an earlier one.

        A question that is asked no more, of an older rubric say, counts as the dearest of today.
        """
        lost = self._lost_since()
        if lost:
            dearest = max(self._worst_usd.values(), default=0.0)
            self._usd += sum(self._worst_usd.get(key, dearest) for key in lost)
        return self._usd

    def _lost_since(self) -> list[Digest]:
        """Return the queries, one for each such failure, that were recorded since the last look."""
        ledger, since = self._recorder.ledger, self._position
        self._position = ledger.head.position
        news = ledger.read(
            after=since,
            until=self._position,
            stream=self._recorder.state.stream,
            types=["JudgeQueryFailed"],
        )
        return [
            event.query_key
            for event in (each.event for each in news)
            if isinstance(event, JudgeQueryFailed)
            and event.judge == self._judge.judge_id
            and may_have_been_billed(event.detail)
        ]

    @cached_property
    def _worst_usd(self) -> Mapping[Digest, float]:
        """What each question can cost at most; no text is held."""
        state = self._recorder.state
        everyone = [prompt.prompt_id for prompt in state.bank]
        matches = (match_of(state, each, self._judge) for each in pairings(state, everyone))
        return {
            question.query_key: self._pricing.worst_usd([question]) or 0.0
            for match in matches
            if match is not None
            for question in (match.forward, match.swapped)
        }
