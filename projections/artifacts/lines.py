"""The files of a run with a line for each pair: matches, verdicts with their replies, battles.

Lines are as Python's `json` writes them. A text stands in many lines: it is encoded once, and they
are joined of pieces of what is encoded.
"""

from collections.abc import Hashable, Iterator
from functools import cache, cached_property
from typing import Final, TypeAlias

import msgspec

from ledger.events.money import Usage
from ledger.identity import Dimension
from ledger.recorded import moment
from projections.artifacts.judgearena import of_settlements
from projections.artifacts.results import Results
from projections.tournament.matches import Match
from projections.tournament.settlement import Settlement
from projections.verdicts.queries import RecordedVerdict

_encode: Final = msgspec.json.Encoder().encode
_JUDGED: Final = frozenset({"a", "b", "tie", "inconsistent"})
_NOBODY: Final = b"null"
_TRUTH: Final = (b"false", b"true")
_PAIR: Final = (
    b'"prompt_id": %b, "source": %b, "prompt_text": %b, "entrant_a": %b, "entrant_b": %b,'
    b' "response_a": %b, "response_b": %b, "gold_answer": %b, "expected_behavior": %b}'
)
_VERDICT: Final = (
    b', "dimension": %b, "entrant_a": %b, "entrant_b": %b, "winner": %b, "inconsistent": %b,'
    b' "outcome": %b, "raw": '
)
_BEGINNING: Final = b'{"prompt_id": '
# Around a reply, what is the same in many:
_JUDGMENT: Final = (
    b', "rubric_version": %b, "judge_model": %b, "position_swap": %b, "verdict": %b, "reasoning": '
)
_READING: Final = b', "parser": %b, "stop_reason": %b, "timestamp": '
_TOKENS: Final = (
    b', "cache_creation_input_tokens": %d, "cache_read_input_tokens": %d, "input_tokens": %d,'
    b' "output_tokens": %d}'
)
_NOT_COUNTED: Final = _TOKENS.replace(b"%d", b"null")
_FIRST: Final = b'[{"cache_key": "'
_SECOND: Final = b', {"cache_key": "'
_BEFORE_PAIR: Final = b'", "pair": {'
_END: Final = b"]}\n"
_NO_REPLIES: Final = b'[], "basis": "identical"}\n'


Pieces: TypeAlias = list[bytes]
"""What joined is a line: a pair's texts stand in many lines, and are one piece."""


class PairLines:
    """The lines of settled pairs, each a JSON object."""

    def __init__(self, results: Results) -> None:
        self._results = results
        self._json = cache(_encode)  # of texts that stand in several lines
        self._moment = cache(_moment)  # what is appended together has one time
        self._judgment, self._reading = cache(_judgment), cache(_reading)
        self._dimension, self._verdict = cache(_dimension), cache(_verdict)
        self._pairs: dict[tuple[str, ...], bytes] = {}  # by prompt and entrants

    def matches(self) -> Iterator[Pieces]:
        """Yield every pair that could be judged, with both responses."""
        for settlement in self._in_match_order:
            if settlement.match is not None:
                dimension, *_ = names = settlement.pairing.names
                yield [self._dimension(dimension), self._pair(settlement.match, names[1:]), b"\n"]

    @cached_property
    def _in_match_order(self) -> list[Settlement]:
        """Every settlement in match order: prompts in bank order, then dimensions, then pairs."""
        order = {prompt.prompt_id: n for n, prompt in enumerate(self._results.tournament.bank)}
        settled = [each for group in self._results.settlements.values() for each in group]
        return sorted(settled, key=lambda each: order[each.pairing.prompt.prompt_id])

    def _pair(self, match: Match, names: tuple[str, ...]) -> bytes:
        """Return a pair's texts, but for how the object begins: the same on every dimension."""
        pair = self._pairs.get(names)
        if pair is None:
            pair = self._pairs[names] = _PAIR % tuple(map(self._json, _texts_of(match)))
        return pair

    def verdicts(self, dimension: Dimension) -> Iterator[Pieces]:
        """Yield every judged pair of a dimension, with the complete replies in its orders."""
        given = self._results.tournament.verdicts
        for settlement in self._results.settlements[dimension]:
            pairing, match, status, *_ = settlement
            if match is None or status not in _JUDGED:
                continue
            _, prompt_id, a, b = names = pairing.names
            line = _BEGINNING, self._json(prompt_id), self._verdict(dimension, a, b, status)
            if match.forward_key not in given and match.is_identical:  # it tied without being asked
                yield [*line, _NO_REPLIES]
                continue
            pair, version = self._pair(match, names[1:]), pairing.rubric.version
            pieces, before = [*line], _FIRST
            for order, key in match.keys:
                reply = self._reply(given[key], version, is_swapped=order == "swapped")
                pieces += [before + key.encode() + _BEFORE_PAIR, pair, reply]
                before = _SECOND
            yield [*pieces, _END]

    def _reply(self, given: RecordedVerdict, version: str, *, is_swapped: bool) -> bytes:
        verdict, recorded_us = given
        return b"".join(
            (
                self._judgment(version, verdict.model, is_swapped, verdict.verdict),
                _encode(verdict.reply),
                self._reading(verdict.parser, verdict.stop_reason),
                self._moment(recorded_us),
                _tokens(verdict.usage),
            )
        )

    def battles(self) -> Iterator[Pieces]:
        """Yield the pairs with a verdict in JudgeArena's battle format."""
        known: dict[Hashable, tuple[bytes, bytes]] = {}
        for each in self._in_match_order:
            if each.share is not None:
                dimension, prompt_id, a, b = each.pairing.names
                alike = dimension, a, b, each.share, each.weight
                if alike not in known:
                    known[alike] = self._around_prompt(each)
                before, after = known[alike]
                yield [before, self._json(prompt_id), after]

    def _around_prompt(self, settlement: Settlement) -> tuple[bytes, bytes]:
        """Return what stands before and after the prompt's id in a pair's battle."""
        (record,) = of_settlements([settlement], self._results.judge.model)
        fields = {**record, "dimension": settlement.dimension}
        encoded = [b"%b: %b" % (_encode(name), _encode(value)) for name, value in fields.items()]
        at = [*fields].index("question_id")
        before, after = b", ".join(encoded[:at]), b", ".join(encoded[at + 1 :])
        return b'{%b, "question_id": ' % before, b", %b}\n" % after


def _texts_of(match: Match) -> tuple[str | None, ...]:
    """Return the values of a pair's fields."""
    pairing, prompt = match.pairing, match.pairing.prompt
    return (
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


def _dimension(name: Dimension) -> bytes:
    return b'{"dimension": %b, ' % _encode(name)


def _verdict(dimension: Dimension, a: str, b: str, status: str) -> bytes:
    """Return what stands between the prompt's id and the replies."""
    names = _encode(a), _encode(b)
    winner = dict(zip("ab", names, strict=True)).get(status, _NOBODY)
    is_inconsistent = _TRUTH[status == "inconsistent"]
    return _VERDICT % (_encode(dimension), *names, winner, is_inconsistent, _encode(status))


def _judgment(*said: str | bool) -> bytes:
    return _JUDGMENT % tuple(map(_encode, said))


def _reading(*names: str) -> bytes:
    return _READING % tuple(map(_encode, names))


def _moment(recorded_us: int) -> bytes:
    return _encode(moment(recorded_us).isoformat())


def _tokens(usage: Usage | None) -> bytes:
    """Return a reply's tokens; an offline judge counts none."""
    if usage is None:
        return _NOT_COUNTED
    written = usage.n_cache_write_5m + usage.n_cache_write_1h
    return _TOKENS % (written, usage.n_cache_read, usage.n_input, usage.n_output)
