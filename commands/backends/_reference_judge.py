"""An offline judge for dimensions with a gold answer: the response closer to it in chrF wins.

chrF is the F-score of character n-grams (Popović 2015, "chrF: character n-gram F-score for
automatic MT evaluation"), here sacrebleu's with its defaults: n = 1..6, beta = 2, scale 0-100.
It measures overlap of letters, not truth: use it for rehearsals and tests, never for claims.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache

from sacrebleu.metrics.chrf import CHRF

from commands.judging.panel import REFERENCE_MODEL
from commands.ports import Reply
from projections.verdicts.queries import JudgeQuery


class ReferenceJudge:
    """Compares both responses with the gold answer; a difference within the tie band is a TIE."""

    def __init__(self, *, tie_band: float) -> None:
        self._tie_band = tie_band
        self._chrf = lru_cache(maxsize=None)(CHRF().sentence_score)

    def answer(self, queries: Sequence[JudgeQuery]) -> Iterator[Reply]:
        """Yield a reply to each query, in order."""
        for query in queries:
            yield Reply(
                query.query_key, self._reply(query), stop_reason="end_turn", model=REFERENCE_MODEL
            )

    def _reply(self, query: JudgeQuery) -> str:
        a, b = (self._closeness(query, shown) for shown in (query.shown_a, query.shown_b))
        verdict = "TIE" if abs(a - b) <= self._tie_band else "A" if a > b else "B"
        return (
            f"chrF to the reference answer: response A {a:.2f}, response B {b:.2f};"
            f" within {self._tie_band:g} is a tie.\nVERDICT: {verdict}"
        )

    def _closeness(self, query: JudgeQuery, shown: str) -> float:
        if query.gold_answer is None:
            raise ValueError(f"query {query.query_key} has no gold answer to compare with")
        return float(self._chrf(shown, (query.gold_answer,)).score)
