"""The files of a run with a line for each pair: matches, verdicts with their replies, battles.

A line is a JSON object, with blanks where Python's `json` has them.
"""

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

import msgspec

from ledger.events.judging import Order
from ledger.events.money import Usage
from ledger.identity import Digest, Dimension, Fields
from ledger.recorded import moment
from projections.artifacts.judgearena import of_settlements
from projections.artifacts.results import SettledPairs
from projections.tournament.matches import Match
from projections.tournament.settlement import Settlement

_JUDGED: Final = frozenset({"a", "b", "tie", "inconsistent"})

_TOKENS: Final = (
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "input_tokens",
    "output_tokens",
)

Pieces: TypeAlias = Iterable[bytes]
"""What joined is a file."""


def line_files(results: SettledPairs) -> dict[str, Iterator[bytes]]:
    """Return the lines of each file; of a part of the prompts, that part of the run's lines."""
    return {
        "matches/matches.jsonl": map(_line, _matches(results)),
        **{
            f"verdicts/{dimension}.jsonl": map(_line, _verdicts(results, dimension))
            for dimension in results.settlements
        },
        "battles.jsonl": map(_line, _battles(results)),
    }


def _line(fields: Fields) -> bytes:
    return msgspec.json.format(msgspec.json.encode(fields), indent=0) + b"\n"


def _matches(results: SettledPairs) -> Iterator[Fields]:
    """Yield every pair that could be judged, with both responses."""
    for settlement in _in_match_order(results):
        if settlement.match is not None:
            yield {"dimension": settlement.dimension, **_pair(settlement.match)}


def _in_match_order(results: SettledPairs) -> list[Settlement]:
    """Return every settlement: prompts in bank order, then dimensions, then pairs."""
    order = {prompt.prompt_id: n for n, prompt in enumerate(results.tournament.bank)}
    settled = [settlement for group in results.settlements.values() for settlement in group]
    return sorted(settled, key=lambda each: order[each.pairing.prompt.prompt_id])


def _pair(match: Match) -> Fields:
    pairing, prompt = match.pairing, match.pairing.prompt
    return {
        "prompt_id": prompt.prompt_id,
        "source": prompt.source,
        "prompt_text": prompt.text,
        "entrant_a": pairing.a.entrant.entrant_id,
        "entrant_b": pairing.b.entrant.entrant_id,
        "response_a": match.response_a.text,
        "response_b": match.response_b.text,
        "gold_answer": prompt.gold_answer,
        "expected_behavior": prompt.expected_behavior,
    }


def _verdicts(results: SettledPairs, dimension: Dimension) -> Iterator[Fields]:
    """Yield every judged pair of a dimension, with the complete replies in its orders."""
    for settlement in results.settlements[dimension]:
        match, status = settlement.match, settlement.status
        if match is None or status not in _JUDGED:
            continue
        _, prompt_id, a, b = settlement.pairing.names
        tied_unasked = match.is_identical and match.forward_key not in results.tournament.verdicts
        replies = () if tied_unasked else match.keys
        yield {
            "prompt_id": prompt_id,
            "dimension": dimension,
            "entrant_a": a,
            "entrant_b": b,
            "winner": {"a": a, "b": b}.get(status),
            "inconsistent": status == "inconsistent",
            "outcome": status,
            "raw": [_reply(results, match, order, key) for order, key in replies],
            **({"basis": "identical"} if tied_unasked else {}),
        }


def _reply(results: SettledPairs, match: Match, order: Order, key: Digest) -> Fields:
    verdict, recorded_us = results.tournament.verdicts[key]
    return {
        "cache_key": key,
        "pair": _pair(match),
        "rubric_version": match.pairing.rubric.version,
        "judge_model": verdict.model,
        "position_swap": order == "swapped",
        "verdict": verdict.verdict,
        "reasoning": verdict.reply,
        "parser": verdict.parser,
        "stop_reason": verdict.stop_reason,
        "timestamp": moment(recorded_us).isoformat(),
        **_tokens(verdict.usage),
    }


def _tokens(usage: Usage | None) -> Fields:
    """Return a reply's tokens; an offline judge counts none."""
    counts: tuple[int | None, ...] = (None,) * len(_TOKENS)
    if usage is not None:
        written = usage.n_cache_write_5m + usage.n_cache_write_1h
        counts = written, usage.n_cache_read, usage.n_input, usage.n_output
    return dict(zip(_TOKENS, counts, strict=True))


def _battles(results: SettledPairs) -> Iterator[Fields]:
    """Yield the pairs with a verdict in JudgeArena's battle format."""
    for settlement in _in_match_order(results):
        for record in of_settlements([settlement], results.judge.model):
            yield {**record, "dimension": settlement.dimension}
