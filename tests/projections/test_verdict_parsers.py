"""Reading stored replies as the scripts before tourney did, and finding parsers by name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.events.judging import Verdict
from projections.verdicts.parsers import (
    BLIND_TO_STOPS,
    LENIENT_PARSER,
    PARSER,
    PARSERS,
    newest_parser,
    parse_leniently,
    parse_verdict,
)

CONFORMANCE: list[tuple[str, Verdict]] = [
    ("VERDICT: A", "A"),
    ("verdict:tie", "TIE"),
    ("VERDICT: A wins", "A"),
    ("VERDICT: A\nVERDICT: B\nthanks", "B"),
    ("- VERDICT: A", "TIE"),
    ("**VERDICT: A**", "TIE"),
    ("VERDICT: [A]", "TIE"),
]
FAULTS: list[tuple[str, Verdict]] = [
    ("VERDICT: Both equal", "B"),
    ("VERDICT: answer is B", "A"),
    ("VERDICT: A, B, or TIE", "A"),
    ("VERDICT: tied", "TIE"),
    ("Both are wrong, in the same", "TIE"),
    ("  \n\t\n", "TIE"),
]
OTHERS: list[tuple[str, Verdict]] = [
    ("VERDICT: B\nVERDICT: neither", "B"),
    ("VERDICT: B\nMy VERDICT: A", "B"),
    ("VERDICT : B", "TIE"),
    ("VERDICT B", "TIE"),
    ("VERDICT:  B \r\n\r\n", "B"),
    ("VERDICT: B\u2028and more", "B"),
    ("VERDICT:", "TIE"),
    ("VERDICT: a: b", "A"),
]


@pytest.mark.parametrize(("reply", "verdict"), CONFORMANCE)
def test_the_old_scripts_vectors_are_read_as_they_read_them(reply: str, verdict: Verdict) -> None:
    """A comparison with results of then is worth something only if it is exact."""
    assert parse_leniently(reply) == verdict


@pytest.mark.parametrize(("reply", "verdict"), FAULTS)
def test_their_faults_are_reproduced(reply: str, verdict: Verdict) -> None:
    """A prefix decides and silence is a tie: what this did to a result is to be measured."""
    assert parse_leniently(reply) == verdict


@pytest.mark.parametrize(("reply", "verdict"), OTHERS)
def test_lines_are_taken_from_the_last_up(reply: str, verdict: Verdict) -> None:
    """A line that says no verdict is passed over, and the one before it decides."""
    assert parse_leniently(reply) == verdict


@given(reply=st.text() | st.text(alphabet="VERDICT:ABTIEverdict \u0130\u0131\ufb00[].*`\n\r"))
def test_every_reply_has_some_verdict(reply: str) -> None:
    """It never says that it cannot read: that is its fault, and must not become an error."""
    assert parse_leniently(reply) in {"A", "B", "TIE"}


@given(reasoning=st.text(), verdict=st.sampled_from(("A", "B", "TIE")))
def test_both_parsers_agree_on_a_reply_that_keeps_to_the_protocol(
    reasoning: str, verdict: Verdict
) -> None:
    """So what they disagree on is what a judge got wrong."""
    reply = f"{reasoning}\nVERDICT: {verdict}"

    assert parse_leniently(reply) == parse_verdict(reply) == verdict


@pytest.mark.parametrize("parser", PARSERS)
def test_a_parser_is_found_by_its_name_with_or_without_a_version(parser: str) -> None:
    """Who wants the newest need not know which it is."""
    assert newest_parser(parser) == newest_parser(parser.partition("@")[0]) == parser


@pytest.mark.parametrize("name", ["", "lenient", "final-line@2", "@1", "final-line@"])
def test_an_unknown_parser_is_not_found(name: str) -> None:
    """A name that is nearly right must not choose a parser by chance."""
    assert newest_parser(name) is None


def test_only_the_old_scripts_looked_past_why_a_reply_ended() -> None:
    """A reply cut off before its verdict is not a tie, but was one to them."""
    assert {LENIENT_PARSER} == BLIND_TO_STOPS
    assert PARSER not in BLIND_TO_STOPS
