"""Reading a judge's verdict."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.events.judging import Verdict
from projections.verdicts.parsers import (
    PARSER_OF,
    PARSERS,
    parse_json_verdict,
    parse_leniently,
    parse_score_verdict,
    parse_verdict,
)
from tests.support.patience import at_once

READABLE: list[tuple[str, Verdict]] = [
    ("VERDICT: A", "A"),
    ("VERDICT: B", "B"),
    ("verdict:tie", "TIE"),
    ("Both err.\nVERDICT: TIE\n\n  \n", "TIE"),
    ("VERDICT: A\nOn reflection:\nVERDICT: B", "B"),
    ("VERDICT: B\r\n", "B"),
    ("**VERDICT: A**", "A"),
    ("**Verdict:** B", "B"),
    ("__VERDICT__: `TIE`", "TIE"),
    ("- VERDICT: A", "A"),
    ("* VERDICT: A", "A"),
    ("\u2022 VERDICT: A", "A"),
    ("> VERDICT: B", "B"),
    ("### VERDICT: B", "B"),
    ("VERDICT: [A]", "A"),
    ('"VERDICT: A".', "A"),
    ("'VERDICT: TIE'", "TIE"),
    ("VERDICT:\u00a0A\u2028", "A"),
]
UNREADABLE = [
    "",
    " \n\t\n",
    "VERDICT: A wins",
    "VERDICT: A\nVERDICT: B\nthanks",
    "VERDICT: Both equal",
    "The answer is B",
    "VERDICT: A, B, or TIE",
    "VERDICT: A or B",
    "VERDICT: AB",
    "VERDICT: C",
    "VERDICT:",
    "VERDICT: A\nVERDICT: C",
    "My VERDICT: A",
    "VERDICT A",
    "VERDICT: T\u0130E",  # a Turkish capital i: the lower-case TIE of a Turkish locale
    "VERDICT: T\u0131E",
    "V\u0395RDICT: A",  # a Greek E
    "We compare\u2028VERDICT: A",
    "We compare\rVERDICT: A",
    "VERDICT: A\x00",
    "\x00",
    "VERDICT: \uff21",  # a full-width A
]
NO_OBJECTS = [
    "",
    "VERDICT: A",
    '"A"',
    '["A"]',
    "7",
    "null",
    "{}",
    '{"verdict":"A"',
    '{"verdict":"A"} indeed',
    '{"verdict":null}',
    '{"verdict":["A"]}',
    '{"verdict":{"A":1}}',
    '{"verdict":"C"}',
    '{"verdict":""}',
    '{"verdict":"T\u0131E"}',
    '{"VERDICT":"A"}',
    '{"said":{"verdict":"A"}}',
    "[" * 100_000,
    '{"verdict":' + "9" * 10_000 + "}",
]
LONG = [
    "VERDICT: A" + "*" * 100_000 + "x",
    "VERDICT: A" + " " * 50_000 + "." + " " * 50_000 + "x",
    "*" * 100_000 + "VERDICT: A wins",
    "VERDICT" + " " * 100_000 + "A",
    "VERDICT: A\n" * 10_000 + "thanks",
    "VERDICT: A\x00" * 10_000,
    "\u2028" * 100_000 + "x",
]


def test_every_parser_that_verdicts_name_is_known_for_ever() -> None:
    """A stored verdict is checked by the rule it was read by, however many rules come after."""
    assert dict(PARSERS) == {
        "final-line@1": parse_verdict,
        "json-verdict@1": parse_json_verdict,
        "lenient-tap@1": parse_leniently,
        "judgearena-score@1": parse_score_verdict,
    }
    assert set(PARSER_OF.values()) <= set(PARSERS)


@pytest.mark.parametrize(("reply", "verdict"), READABLE)
def test_a_verdict_on_the_final_line_is_read(reply: str, verdict: Verdict) -> None:
    """Judges decorate the line they were asked for; such a reply is paid for and clear."""
    assert parse_verdict(reply) == verdict


@pytest.mark.parametrize("reply", UNREADABLE)
def test_anything_else_is_no_verdict(reply: str) -> None:
    """A guess at what a judge meant would become a rating; a failure is asked for again."""
    assert parse_verdict(reply) is None


@pytest.mark.parametrize("reply", LONG, ids=range(len(LONG)))
def test_a_hundred_kilobytes_are_read_at_once(reply: str) -> None:
    """A judge that loops fills its whole reply, and must not stop the run."""
    with at_once():
        verdict = parse_verdict(reply)

    assert verdict is None


@given(reply=st.text() | st.text(alphabet="VERDICT:ABTIEverdict \u0130\u0131\u017f[].*`\n\r"))
def test_no_reply_can_raise_an_error(reply: str) -> None:
    """Replies are recorded as they come: an error here would lose one that was paid for."""
    assert parse_verdict(reply) in {"A", "B", "TIE", None}


@given(reasoning=st.text(), verdict=st.sampled_from(("A", "B", "TIE")))
def test_nothing_before_the_final_line_counts(reasoning: str, verdict: Verdict) -> None:
    """A judge thinks aloud, quotes responses and changes its mind; its last word holds."""
    assert parse_verdict(f"{reasoning}\nVERDICT: {verdict}") == verdict


@given(word=st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789", min_size=1))
def test_one_more_word_makes_a_verdict_unreadable(word: str) -> None:
    """`VERDICT: A is not better` begins like a verdict for A and is none."""
    assert parse_verdict(f"VERDICT: A {word}") is None


@pytest.mark.parametrize("protocol", ["line", "schema"])
def test_every_protocol_has_a_parser_for_its_replies(protocol: str) -> None:
    """A reply asked for as JSON and read by its last line would never have a verdict."""
    replies = {"line": "Both err.\nVERDICT: TIE", "schema": '{"reasoning":"","verdict":"TIE"}'}

    read = {name: PARSERS[PARSER_OF[protocol]](reply) for name, reply in replies.items()}

    assert read == {name: "TIE" if name == protocol else None for name in replies}


@pytest.mark.parametrize("verdict", ["A", "B", "TIE"])
def test_a_verdict_in_an_object_is_read(verdict: Verdict) -> None:
    """Providers that hold a judge to a schema leave nothing to guess."""
    reply = json.dumps({"reasoning": "VERDICT: A\nVERDICT: B", "verdict": verdict})

    assert parse_json_verdict(f" {reply}\n") == verdict


@pytest.mark.parametrize(
    "reply", ['{"verdict": "tie"}', '```json\n{"verdict": "TIE"}\n```', '```\n{"verdict":"Tie"}```']
)
def test_letters_case_and_a_code_fence_do_not_hide_a_verdict(reply: str) -> None:
    """Such a reply is paid for and clear: providers promise neither case nor bareness."""
    assert parse_json_verdict(reply) == "TIE"


@pytest.mark.parametrize("reply", NO_OBJECTS)
def test_anything_but_one_object_with_a_verdict_is_none(reply: str) -> None:
    """Half an object is a reply that was cut off; guessing its end would invent a verdict."""
    assert parse_json_verdict(reply) is None


@given(reply=st.text() | st.text(alphabet='{}[]":,verdictABTIE01e-\\u'))
def test_no_object_can_raise_an_error(reply: str) -> None:
    """Like any reply it was paid for, and must be recorded whatever it holds."""
    assert parse_json_verdict(reply) in {"A", "B", "TIE", None}
