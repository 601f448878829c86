"""The records of a run, one a line: matches, verdicts, battles."""

from collections.abc import Iterable, Iterator
from typing import Final

from ledger.events.values import Usage
from projections.artifacts.results import Fields, Results
from projections.battle_records import of_settlements
from projections.judge_query import JudgeQuery
from projections.matches import Match
from projections.settlement import Settlement

_TOKENS: Final = (
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "input_tokens",
    "output_tokens",
)
_JUDGED: Final = frozenset({"a", "b", "tie", "inconsistent"})


def matches(results: Results) -> Iterator[Fields]:
    """Yield every pair that could be judged, with both responses."""
    for settlement in _in_match_order(results):
        if settlement.match is not None:
            dimension = settlement.pairing.rubric.dimension
            yield {"dimension": dimension, **_pair(settlement.match)}


def _in_match_order(results: Results) -> Iterator[Settlement]:
    """Prompts in bank order, then dimensions, then pairs: the order in which they were settled."""
    groups = [list(group) for group in results.settlements.values()]
    ids = [prompt.prompt_id for prompt in results.tournament.bank]
    order = {prompt_id: n for n, prompt_id in enumerate(ids)}
    settled = [settlement for group in groups for settlement in group]
    yield from sorted(settled, key=lambda each: order[each.pairing.prompt.prompt_id])


def _pair(match: Match) -> Fields:
    prompt = match.pairing.prompt
    return {
        "prompt_id": prompt.prompt_id,
        "source": prompt.source,
        "prompt_text": prompt.text,
        "entrant_a": match.pairing.a.entrant.entrant_id,
        "entrant_b": match.pairing.b.entrant.entrant_id,
        "response_a": match.response_a.text,
        "response_b": match.response_b.text,
        "gold_answer": prompt.gold_answer,
        "expected_behavior": prompt.expected_behavior,
    }


def verdicts(results: Results, settlements: Iterable[Settlement]) -> Iterator[Fields]:
    """Yield every reconciled pair with both replies whole."""
    for settlement in settlements:
        match = settlement.match
        if match is None or settlement.status not in _JUDGED:
            continue
        yield {
            "prompt_id": match.pairing.prompt.prompt_id,
            "dimension": match.pairing.rubric.dimension,
            "entrant_a": match.pairing.a.entrant.entrant_id,
            "entrant_b": match.pairing.b.entrant.entrant_id,
            "winner": settlement.winner,
            "inconsistent": settlement.status == "inconsistent",
            "outcome": settlement.status,
            **_asked(results, match),
        }


def _asked(results: Results, match: Match) -> Fields:
    """Return both orders' replies; two identical responses may have tied unasked."""
    if match.is_identical and match.forward.query_key not in results.tournament.verdicts:
        return {"raw": [], "basis": "identical"}
    return {"raw": [_raw(results, match, match.forward), _raw(results, match, match.swapped)]}


def _raw(results: Results, match: Match, question: JudgeQuery) -> Fields:
    given = results.tournament.verdicts[question.query_key]
    verdict = given.event
    return {
        "cache_key": question.query_key,
        "pair": _pair(match),
        "rubric_version": match.pairing.rubric.version,
        "judge_model": verdict.model,
        "position_swap": question.order == "swapped",
        "verdict": verdict.verdict,
        "reasoning": verdict.reply,
        "parser": verdict.parser,
        "stop_reason": verdict.stop_reason,
        "timestamp": given.recorded_at.isoformat(),
        **_tokens(verdict.usage),
    }


def _tokens(usage: Usage | None) -> Fields:
    """Return the tokens of a reply under the customer's names; an offline judge counts none."""
    if usage is None:
        return dict.fromkeys(_TOKENS)
    written = usage.n_cache_write_5m + usage.n_cache_write_1h
    counts = (written, usage.n_cache_read, usage.n_input, usage.n_output)
    return dict(zip(_TOKENS, counts, strict=True))


def battles(results: Results) -> Iterator[Fields]:
    """Yield what was won, lost or tied, in the shape of JudgeArena's battles."""
    for settlement in _in_match_order(results):
        dimension = settlement.pairing.rubric.dimension
        for battle in of_settlements([settlement], results.judge.model):
            yield battle | {"dimension": dimension}
