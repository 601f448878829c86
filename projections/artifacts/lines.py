"""The files of a run with a line for each pair: matches, verdicts with their replies, battles.

Lines are as Python's `json` writes them. A text stands in many lines: it is encoded once, and they
are put together of what is encoded.
"""

from collections.abc import Hashable, Iterable, Iterator
from functools import cache
from typing import Final

import msgspec

from ledger.events.judging import Order
from ledger.events.money import Usage
from ledger.identity import Digest, Dimension
from ledger.recorded import moment
from projections.artifacts.judgearena import of_settlements
from projections.artifacts.results import SettledPairs
from projections.tournament.compared import SCORES
from projections.tournament.matches import Match
from projections.tournament.settlement import Settlement

_encode: Final = msgspec.json.Encoder().encode
_JUDGED: Final = frozenset({"a", "b", "tie", "inconsistent"})
_NOBODY: Final = b"null"
_TRUTH: Final = (b"false", b"true")


class _Object:
    """JSON objects with some fields, put together of their encoded values."""

    def __init__(self, *names: str) -> None:
        beginnings = [
            b"%b%b: " % (b", " if n else b"{", _encode(each)) for n, each in enumerate(names)
        ]
        self._parts = [part for each in beginnings for part in (each, b"")] + [b"}"]

    def __call__(self, *values: bytes) -> bytes:
        """Return the object with these values."""
        parts = self._parts.copy()
        parts[1::2] = values  # `%` would copy long texts several times
        return b"".join(parts)


_PAIR_FIELDS: Final = (
    "prompt_id",
    "source",
    "prompt_text",
    "entrant_a",
    "entrant_b",
    "response_a",
    "response_b",
    "gold_answer",
    "expected_behavior",
)
_PAIR: Final = _Object(*_PAIR_FIELDS)
_MATCH: Final = _Object("dimension", *_PAIR_FIELDS)
_TOKENS: Final = (
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "input_tokens",
    "output_tokens",
)
_NOT_COUNTED: Final = (b"null",) * len(_TOKENS)
_REPLY: Final = _Object(
    "cache_key",
    "pair",
    "rubric_version",
    "judge_model",
    "position_swap",
    "verdict",
    "reasoning",
    "parser",
    "stop_reason",
    "timestamp",
    *_TOKENS,
)
_VERDICT: Final = _Object(
    "prompt_id",
    "dimension",
    "entrant_a",
    "entrant_b",
    "winner",
    "inconsistent",
    "outcome",
    "raw",
)
_NO_REPLIES: Final = b'[], "basis": "identical"'


def line_files(results: SettledPairs) -> dict[str, bytes]:
    """Return the files with lines for each pair; those of a section are a section of the run's."""
    lines = PairLines(results)
    return {
        "matches/matches.jsonl": _lines(lines.matches()),
        **{
            f"verdicts/{dimension}.jsonl": _lines(lines.verdicts(dimension))
            for dimension in results.settlements
        },
        "battles.jsonl": _lines(lines.battles()),
    }


def _lines(objects: Iterable[bytes]) -> bytes:
    return b"".join([part for each in objects for part in (each, b"\n")])


class PairLines:
    """The lines of settled pairs, each a JSON object."""

    def __init__(self, results: SettledPairs) -> None:
        self._results = results
        self._json = cache(_encode)  # of texts that stand in several lines
        self._moment = cache(_moment)  # what is appended together has one time

    def matches(self) -> Iterator[bytes]:
        """Yield every pair that could be judged, with both responses."""
        for settlement in self._in_match_order():
            if settlement.match is not None:
                dimension = self._json(settlement.dimension)
                yield _MATCH(dimension, *self._pair(settlement.match))

    def _in_match_order(self) -> Iterator[Settlement]:
        """Yield settlements in match order: prompts in bank order, then dimensions, then pairs."""
        order = {prompt.prompt_id: n for n, prompt in enumerate(self._results.tournament.bank)}
        settled = [each for group in self._results.settlements.values() for each in group]
        yield from sorted(settled, key=lambda each: order[each.pairing.prompt.prompt_id])

    def _pair(self, match: Match) -> tuple[bytes, ...]:
        pairing, prompt = match.pairing, match.pairing.prompt
        said = (
            prompt.prompt_id,
            prompt.source,
            prompt.text,
            pairing.a.entrant.entrant_id,
            pairing.b.entrant.entrant_id,
            match.response_a.text,
            match.response_b.text,
            prompt.gold_answer,
            prompt.expected_behavior,
        )
        return tuple(map(self._json, said))

    def verdicts(self, dimension: Dimension) -> Iterator[bytes]:
        """Yield every reconciled pair of a dimension, with both complete replies."""
        for settlement in self._results.settlements[dimension]:
            match = settlement.match
            if match is not None and settlement.status in _JUDGED:
                pair = self._pair(match)
                prompt_id, _, _, a, b, *_ = pair
                yield _VERDICT(
                    prompt_id,
                    self._json(dimension),
                    a,
                    b,
                    {"a": a, "b": b}.get(settlement.status, _NOBODY),
                    _TRUTH[settlement.status == "inconsistent"],
                    self._json(settlement.status),
                    self._asked(match, _PAIR(*pair)),
                )

    def _asked(self, match: Match, pair: bytes) -> bytes:
        """Return both orders' replies; identical responses may have tied without being asked."""
        if match.is_identical and match.forward_key not in self._results.tournament.verdicts:
            return _NO_REPLIES
        return b"[%b]" % b", ".join([self._reply(match, pair, *each) for each in match.keys])

    def _reply(self, match: Match, pair: bytes, order: Order, query_key: Digest) -> bytes:
        verdict, recorded_us = self._results.tournament.verdicts[query_key]
        return _REPLY(
            _encode(query_key),
            pair,
            self._json(match.pairing.rubric.version),
            self._json(verdict.model),
            _TRUTH[order == "swapped"],
            self._json(verdict.verdict),
            _encode(verdict.reply),
            self._json(verdict.parser),
            self._json(verdict.stop_reason),
            self._moment(recorded_us),
            *_tokens(verdict.usage),
        )

    def battles(self) -> Iterator[bytes]:
        """Yield decided and tied pairs in JudgeArena's battle format."""
        known: dict[Hashable, tuple[bytes, bytes]] = {}
        for each in self._in_match_order():
            if each.status in SCORES:
                alike = each.dimension, each.entrant_a, each.entrant_b, each.status
                if alike not in known:
                    known[alike] = self._around_prompt(each)
                before, after = known[alike]
                yield b"%b%b%b" % (before, self._json(each.prompt_id), after)

    def _around_prompt(self, settlement: Settlement) -> tuple[bytes, bytes]:
        """Return what stands before and after the prompt's id in a pair's battle."""
        (record,) = of_settlements([settlement], self._results.judge.model)
        fields = {**record, "dimension": settlement.dimension}
        encoded = [b"%b: %b" % (_encode(name), _encode(value)) for name, value in fields.items()]
        at = [*fields].index("question_id")
        before, after = b", ".join(encoded[:at]), b", ".join(encoded[at + 1 :])
        return b'{%b, "question_id": ' % before, b", %b}" % after


def _moment(recorded_us: int) -> bytes:
    return _encode(moment(recorded_us).isoformat())


def _tokens(usage: Usage | None) -> tuple[bytes, ...]:
    """Return a reply's tokens, in the order of their names; an offline judge counts none."""
    if usage is None:
        return _NOT_COUNTED
    written = usage.n_cache_write_5m + usage.n_cache_write_1h
    counts = (written, usage.n_cache_read, usage.n_input, usage.n_output)
    return tuple([b"%d" % count for count in counts])
