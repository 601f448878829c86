"""The offline judge: the response closer to the gold answer wins."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.backends.reference_judge import ReferenceJudge
from commands.judging.panel import REFERENCE_MODEL
from commands.ports import Reply
from ledger.events.conversations import transcript
from ledger.events.registration import ScoreScale
from projections.verdicts.parsers import parse_verdict
from projections.verdicts.queries import PairQuery, ScoreQuery
from projections.verdicts.scoring import parse_score
from tests.support.builders.events import key
from tests.support.builders.scores import PASSES, TEN
from tests.support.scripted import answered

GOLD = "Axillary nerve"
CLOSER, FARTHER = "It is the axillary nerve.", "It is the radial nerve."


def reply_to(a: str, b: str, *, gold: str | None = GOLD) -> str:
    """Return what the judge says of two responses."""
    query = PairQuery(key("query"), "forward", "Judge factuality.", f"{a} {b}", a, b, gold)
    (reply,) = answered(ReferenceJudge(), [query])
    assert isinstance(reply, Reply)
    assert (reply.model, reply.stop_reason) == (REFERENCE_MODEL, "end_turn")
    return reply.text


def verdict_on(a: str, b: str) -> str | None:
    """Return the verdict that the parser reads in the reply."""
    return parse_verdict(reply_to(a, b))


def test_within_the_band_it_is_a_tie() -> None:
    """A difference of a letter or two says nothing about truth."""
    long = "It is the axillary nerve, of course, as everybody"

    assert verdict_on(f"{long} knows.", f"{long} knew.") == "TIE"  # 54.7 and 55.3
    assert verdict_on("Axillary nerve", "Axillary nerves") == "A"  # 100 and 98.1


def test_an_empty_response_loses_to_any_overlap() -> None:
    """Saying nothing is not an answer."""
    assert verdict_on("", CLOSER) == "B"
    assert verdict_on("", "") == "TIE"


def test_of_a_conversation_the_last_answer_counts() -> None:
    """The gold answer belongs to it; what was said before changes no closeness."""
    dialogues = [
        transcript((("assistant", first), ("user", "And here?"), ("assistant", last)))
        for first, last in ((FARTHER, CLOSER), (CLOSER, FARTHER))
    ]

    assert reply_to(*dialogues) == reply_to(CLOSER, FARTHER)


@given(st.text(max_size=40))
def test_texts_that_are_equal_always_tie(text: str) -> None:
    """Whatever they say."""
    assert verdict_on(text, text) == "TIE"


@given(st.text(max_size=40), st.text(max_size=40))
def test_swapping_the_slots_swaps_the_verdict(a: str, b: str) -> None:
    """No outcome of this judge is ever inconsistent."""
    swapped = {"A": "B", "B": "A", "TIE": "TIE"}

    verdict = verdict_on(a, b)

    assert verdict is not None
    assert verdict_on(b, a) == swapped[verdict]


def test_the_reply_says_how_it_came_about() -> None:
    """Whoever reads a verdict can check it by hand, as here.

    All n-grams of "nerve" are in the gold answer, n = 1..5, so precision is 1; recall is the mean
    of 5/13, 4/12, 3/11, 2/10 and 1/9, which is 0.2604; F = 5 P R / (4 P + R) = 0.3056.
    """
    assert reply_to("nerve", GOLD) == (
        "chrF to the reference answer: response A 30.56, response B 100.00;"
        " within 1 is a tie.\nVERDICT: B"
    )


@pytest.mark.parametrize(
    ("answer", "scale", "said"),
    [
        (GOLD, TEN, "SCORE: 10.0"),
        ("?", TEN, "SCORE: 1.0"),
        (GOLD, PASSES, "SCORE: PASS"),
        ("?", PASSES, "SCORE: FAIL"),
    ],
)
def test_an_answer_is_scored_by_how_close_it_is(answer: str, scale: ScoreScale, said: str) -> None:
    """From one end of the scale to the other."""
    query = ScoreQuery(key("query"), "system", "user", answer, GOLD, scale)

    (reply,) = answered(ReferenceJudge(), [query])

    assert isinstance(reply, Reply)
    assert reply.text.endswith(said)
    assert parse_score(reply.text, scale) is not None
