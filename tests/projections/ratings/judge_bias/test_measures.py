"""Every bias of a tournament's judges."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from ledger.events.judging import Verdict
from ledger.events.ratings import BradleyTerryParameters
from ledger.events.responses import ResponseGenerated
from projections.intervals import wilson
from projections.ratings.judge_bias.measures import (
    SLOT,
    biases,
    flips,
    slot_preference,
    style_effects,
)
from projections.ratings.judge_bias.pairs import JudgedPairs
from projections.ratings.tournament import style_controlled
from projections.results.judges import BiasRow
from projections.tournament.compared import OPPOSITE, TIE_BESIDE_WIN
from projections.tournament.remaining import repeats_of
from projections.tournament.settlement import by_dimension, settle
from projections.tournament.state import Tournament
from projections.verdicts.queries import RecordedVerdict
from tests.support.builders.events import entrant, judge, known, opened, prompt, verdict
from tests.support.builders.juries import Juror, judged
from tests.support.builders.worlds import SLOT_A, TIE, A, B, Said, answered, everything, heard
from tests.support.statistics import holds

JUDGES = (judge("opus", model="claude-opus-4"), judge("owl"), judge("gpt", model="gpt-5"))
LENGTHS = np.random.default_rng(4).integers(1, 30, size=24)


def held(*saids: Sequence[Said | None], lengths: Sequence[int] = [*LENGTHS]) -> Tournament:
    """Return what judges said of three entrants on eight prompts: twenty-four pairs.

    Args:
        saids: By judge.
        lengths: Of the responses, in words.
    """
    opening = opened(
        prompts=[prompt(f"p{n}") for n in range(8)],
        entrants=[
            entrant("zoe", weights="/weights/claude-mini"),
            entrant("amy"),
            entrant("kim", weights="/weights/olmo"),
        ],
        judges=JUDGES[: len(saids)],
    )
    given = [each for each in answered(opening) if isinstance(each, ResponseGenerated)]
    texts = [f"{n:04} words" * length for n, length in enumerate(lengths)]
    written = [replace(each, text=text) for each, text in zip(given, texts, strict=True)]
    return known(*heard((*opening, *written), *saids))


def drawn(seed: int, *saids: Said) -> list[Said]:
    """Draw twenty-four verdicts."""
    rng = np.random.default_rng(seed)
    return [saids[place] for place in rng.integers(len(saids), size=24)]


def figures(tournament: Tournament) -> dict[tuple[str, str, str | None], BiasRow]:
    """Return every figure by judge, measure and what it is of."""
    return {
        (each.judge, each.measure, each.of): each for each in biases(tournament, tournament.panel)
    }


def measures(tournament: Tournament, name: str) -> dict[str, BiasRow]:
    """Return a judge's figures by measure, the last of each."""
    return {key[1]: figure for key, figure in figures(tournament).items() if key[0] == name}


@pytest.mark.no_cover
def test_a_single_judge_has_habits_and_no_skill() -> None:
    """And no self-preference, of which it is told why."""
    found = figures(held(drawn(1, A, B, SLOT_A, TIE)))

    measured = {measure for _, measure, _ in found}
    assert measured == {
        "slot preference",
        "flips",
        "length",
        "headers",
        "lists",
        "bold",
        "self-preference",
        "transitivity",
        "length control",
    }
    assert {of for _, measure, of in found if measure == "flips"} == {
        "all pairs",
        "opposite winners",
        "a tie beside a win",
        "amy and kim",
        "amy and zoe",
        "kim and zoe",
    }
    assert found["opus", "self-preference", "Claude"].reason is not None


def test_a_jury_has_skills_and_who_did_not_judge_has_nothing() -> None:
    """All are compared on what they share."""
    found = figures(held(drawn(1, A, A, A, B), drawn(2, A, A, B, SLOT_A), []))

    assert {name for name, _, _ in found} == {"opus", "owl"}
    assert found["opus", "skill", None].value == 1.0
    assert ("owl", "skill", None) in found
    assert found["owl", "self-preference", None].value is None


@pytest.mark.no_cover
def test_length_is_told_for_a_response_that_is_twice_as_long() -> None:
    """Styles that never differ have a reason instead."""
    found = measures(held(drawn(3, A, B, A, TIE)), "opus")

    length = found["length"]
    assert length.unit == "Elo points"
    assert length.n == 48
    assert length.ci95_low is not None
    assert length.value is not None
    assert length.ci95_low < length.value
    assert found["headers"].reason == "the same in all pairs of responses"


@pytest.mark.no_cover
def test_the_largest_change_under_length_control_is_told() -> None:
    """It is that of `bt --control length`, with whose it is."""
    tournament = held(drawn(5, A, B, A, TIE))
    found = measures(tournament, "opus")["length control"]

    group = by_dimension(
        tournament, settle(tournament, everything(tournament), tournament.panel[0])
    )
    [(_, adjusted)] = style_controlled(group, ("length",), BradleyTerryParameters(), ())
    changes = dict(
        zip(adjusted.ratings.entrants, adjusted.ratings.rating - adjusted.plain.rating, strict=True)
    )
    assert found.of is not None
    assert found.value == pytest.approx(changes[found.of])
    assert abs(changes[found.of]) == pytest.approx(max(map(abs, changes.values())))
    assert found.n == 24


@pytest.mark.no_cover
def test_responses_that_are_all_as_long_have_no_length_to_control() -> None:
    """A figure of nothing would look like none needed."""
    found = measures(held(drawn(3, A, B, A, TIE), lengths=[1] * 24), "opus")

    why = "the same in all pairs of responses"
    assert found["length"].reason == found["length control"].reason == why


def test_a_length_of_each_entrants_own_cannot_be_told_from_strength() -> None:
    """Each writes about one length: what a judge gives to length it may give to the entrant."""
    own = [size + n % 2 for n in range(8) for size in (5, 20, 80)]
    found = measures(held(drawn(3, A, B, A, TIE), lengths=own), "opus")

    for name in ("length", "length control"):
        assert found[name].value is None
        assert str(found[name].reason).startswith("who wrote the responses explains 9")


def test_who_cannot_be_compared_has_no_style() -> None:
    """The first of each pair always won."""
    found = measures(held([A] * 24), "opus")

    for measure in ("length", "headers", "lists", "bold", "length control"):
        assert found[measure].reason == "no two entrants can be compared"


@pytest.mark.no_cover
def test_transitivity_is_told_with_its_chi_square() -> None:
    """Zoe beats amy, who beats kim, who beats zoe."""
    circle = held([A, B, A] * 8)

    found = measures(circle, "opus")["transitivity"]

    assert found.value is not None
    assert found.value < 0.05
    assert found.of is not None
    assert found.of.startswith("chi-square")
    assert found.of.endswith("1 degrees of freedom")
    assert (found.n, found.n_of) == (3, "pairs of entrants")


def said(forward: list[float], swapped: list[float], prompt: list[int]) -> JudgedPairs:
    """Return what a judge said of ann and bob."""
    n = len(prompt)
    zeros = np.zeros(n, dtype=np.intp)
    return JudgedPairs(
        ("ann", "bob"),
        ("owl",),
        a=zeros,
        b=zeros + 1,
        judge=zeros,
        prompt=np.array(prompt),
        pair=np.arange(len(prompt)),
        forward=np.array(forward),
        swapped=np.array(swapped),
        style={},
    )


def test_a_slot_is_preferred_by_the_verdicts_that_it_gets_more() -> None:
    """A A, A B, A A, tie B: five verdicts for A and two for B, of eight."""
    pairs = said([1, 1, 1, 0.5], [0, 1, 0, 1], [1, 2, 3, 4])

    found = slot_preference(pairs)

    assert found.value == pytest.approx((5 - 2) / 8)
    assert found.n == 8


def test_a_judge_that_never_looks_has_a_preference_of_one() -> None:
    """Of ten prompts; of more, some could have been otherwise."""
    found = slot_preference(said([1.0] * 10, [0.0] * 10, [*range(10)]))

    assert (found.value, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(1 - 2 * wilson(0.0, 10)[1])


def test_prompts_that_all_agree_do_not_make_a_figure_sure() -> None:
    """A judge that was fair on six prompts may not be on the seventh."""
    found = slot_preference(said([1.0, 0.0] * 3, [1.0, 0.0] * 3, [*range(6)]))

    assert found.value == 0.0
    assert found.high == pytest.approx(wilson(0.0, 6)[1])
    assert found.low == pytest.approx(-wilson(0.0, 6)[1])


@pytest.mark.parametrize("forward", [[1.0] * 5, [1.0, 1.0, 1.0, 1.0, 0.0]], ids=["all", "most"])
def test_on_five_prompts_there_is_no_interval(forward: list[float]) -> None:
    """Whether prompts agree or not: as for any other figure, six are needed."""
    found = slot_preference(said(forward, [0.0] * 5, [*range(5)]))

    assert found.value is not None
    assert (found.low, found.high) == (None, None)


def test_flips_are_counted_of_all_and_of_each_two_entrants() -> None:
    """A tie in one order and a winner in the other is a flip, too."""
    pairs = said([1, 1, 0.5, 0.5], [0, 1, 1, 0.5], [1, 2, 3, 4])

    (whole, of_all), (_, opposite), (_, beside), (two, of_two) = flips(pairs)

    assert (whole, two) == ("all pairs", "ann and bob")
    assert of_all == of_two
    assert (opposite.value, beside.value) == (0.25, 0.25)
    assert (of_all.value, of_all.n) == (0.5, 4)


@pytest.mark.parametrize("says_a", [0.0, 0.3])
def test_a_planted_preference_for_a_slot_is_found(says_a: float) -> None:
    """It is in seven of eight intervals at least, whoever is strong."""
    found = [
        slot_preference(judged(np.random.default_rng(seed), [Juror(says_a=says_a)], n_prompts=40))
        for seed in range(8)
    ]

    held = [each for each in found if (each.low or 0.0) <= says_a <= (each.high or 0.0)]
    assert len(held) >= 7


@pytest.mark.no_cover
def test_a_planted_preference_for_length_is_found() -> None:
    """Beside strengths: the longest are the weakest here."""
    held = 0
    for seed in range(8):
        pairs = judged(np.random.default_rng(seed), [Juror(slope=1.0)], n_prompts=40)
        slot, length = style_effects(pairs).coefficients
        assert (slot.feature, length.feature) == (SLOT, "length")
        held += holds(length.lower, 1.0 * length.deviation, length.upper)

    assert held >= 7


def test_without_a_pair_nobody_contradicts_itself() -> None:
    """There is no share of nothing, nor a preference."""
    nothing = said([], [], [])
    found = flips(nothing)

    assert slot_preference(nothing).value is None
    assert [share.value for _, share in found] == [None] * 3


def test_verdicts_that_change_when_asked_again_are_told_beside_flips() -> None:
    """Of the repeats, by how they changed; a repeat without a verdict is none."""
    said = drawn(3, A, B, TIE)
    once = held(said)
    prompts = everything(once)
    first, second, third, fourth, *_ = repeats_of(once, prompts, JUDGES[0])
    same = {
        each.key: once.verdicts[each.repeats].event.verdict
        for each in repeats_of(once, prompts, JUDGES[0])
        if each.repeats
    }
    reversed_: dict[Verdict, Verdict] = {"A": "B", "B": "A", "TIE": "TIE"}
    tied: dict[Verdict, Verdict] = {"A": "TIE", "B": "TIE", "TIE": "A"}
    changed = {
        first.key: reversed_[same[first.key]],
        second.key: tied[same[second.key]],
        third.key: same[third.key],
    }
    verdicts = once.verdicts.update(
        {key: RecordedVerdict(verdict(key, told), 0) for key, told in changed.items()}
    )
    again = dataclasses.replace(once, verdicts=verdicts)
    is_opposite = same[first.key] != "TIE"

    found = figures(again)

    assert not any(measure == "retest flips" for _, measure, _ in figures(once))
    every = found["opus", "retest flips", "all repeats"]
    assert (every.n, every.n_of) == (3, "repeats")
    assert every.value == pytest.approx((1 + is_opposite) / 3)
    assert found["opus", "retest flips", OPPOSITE].value == pytest.approx(is_opposite / 3)
    assert found["opus", "retest flips", TIE_BESIDE_WIN].value == pytest.approx(1 / 3)
    assert found["opus", "flips", "all pairs"] == figures(once)["opus", "flips", "all pairs"]
    assert fourth.key not in again.verdicts
