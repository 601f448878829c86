"""An offline judge for what has a gold answer: the response closer to it in chrF wins.

An answer of an evaluation is scored by its closeness.

chrF is the F-score of character n-grams (Popović 2015, "chrF: character n-gram F-score for
automatic MT evaluation"), here sacrebleu's with its defaults: n = 1..6, beta = 2, scale 0-100.
It measures overlap of letters, not truth: use it for rehearsals and tests, never for claims.
"""

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from threading import Event
from typing import Final

from sacrebleu.metrics.chrf import CHRF

from commands.judging.panel import REFERENCE_MODEL, TIE_BAND
from commands.ports import Reply
from ledger.events.conversations import turns_in
from projections.verdicts.queries import JudgeQuery, PairQuery, ScoreQuery

_PASSES: Final = 50.0  # chrF from which an answer passes, where a rubric wants that


class ReferenceJudge:
    """Compares responses with the gold answer; a difference within the tie band is a TIE."""

    def __init__(self) -> None:
        self._chrf = lru_cache(maxsize=None)(CHRF().sentence_score)

    n_together = 256

    def answers(
        self,
        queries: Sequence[JudgeQuery],
        stops: Event,  # noqa: ARG002  # a port's signature
    ) -> Iterator[tuple[Reply, ...]]:
        """Yield replies in the order of the queries, all at once."""
        yield tuple(
            Reply(query.query_key, self._reply(query), "end_turn", REFERENCE_MODEL)
            for query in queries
        )

    def _reply(self, query: JudgeQuery) -> str:
        return self._comparison(query) if isinstance(query, PairQuery) else self._score(query)

    def _comparison(self, query: PairQuery) -> str:
        why, verdict = self._verdict(query)
        if not query.together:
            return f"{why}\nVERDICT: {verdict}"
        said = {"reasoning": why, "verdict": verdict}
        return json.dumps(dict.fromkeys(query.together, said))

    def _verdict(self, query: PairQuery) -> tuple[str, str]:
        said = map(_last_said, (query.shown_a, query.shown_b))
        a, b = (self._closeness(query, text) for text in said)
        verdict = "TIE" if abs(a - b) <= TIE_BAND else "A" if a > b else "B"
        why = (
            f"chrF to the reference answer: response A {a:.2f}, response B {b:.2f};"
            f" within {TIE_BAND:g} is a tie."
        )
        return why, verdict

    def _score(self, query: ScoreQuery) -> str:
        closeness, limits = self._closeness(query, query.answer), query.scale.limits
        if limits is None:
            score = "PASS" if closeness >= _PASSES else "FAIL"
        else:
            score = f"{limits[0] + (limits[1] - limits[0]) * closeness / 100:.1f}"
        return f"chrF to the reference answer: {closeness:.2f}.\nSCORE: {score}"

    def _closeness(self, query: JudgeQuery, shown: str) -> float:
        if query.gold_answer is None:
            raise ValueError(f"query {query.query_key} has no gold answer to compare with")
        return float(self._chrf(shown, (query.gold_answer,)).score)


def _last_said(shown: str) -> str:
    """Return the last turn of a conversation, to which the gold answer belongs, or the text."""
    turns = turns_in(shown)
    return turns[-1][1] if turns else shown
