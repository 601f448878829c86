"""Every bias of a tournament's judges."""

from collections.abc import Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from ledger.events.ratings import BradleyTerryParameters
from ledger.events.responses import ResponseGenerated
from projections.ratings.judge_bias.measures import biases
from projections.ratings.tournament import style_controlled
from projections.results.judges import BiasRow
from projections.tournament.settlement import by_dimension, settle
from projections.tournament.state import Tournament
from tests.support.builders.events import entrant, judge, known, opened, prompt
from tests.support.builders.worlds import (
    SLOT_A,
    TIE,
    A,
    B,
    Said,
    answered,
    everything,
    heard,
)

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


def test_a_slot_that_is_always_preferred_is_one() -> None:
    """All flip, so all win half."""
    found = measures(held([SLOT_A] * 24), "opus")

    assert found["slot preference"].value == 1.0
    assert found["slot preference"].n == 48
    assert found["flips"].value == 1.0
    assert found["length control"].value == pytest.approx(0.0, abs=1e-6)
    assert found["transitivity"].value == 1.0


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


def test_the_largest_change_under_length_control_is_told() -> None:
    """It is that of `bt --control length`, with whose it is."""
    tournament = held(drawn(5, A, B, A, TIE))
    found = measures(tournament, "opus")["length control"]

    group = by_dimension(
        tournament, settle(tournament, everything(tournament), tournament.panel[0])
    )
    [(_, adjusted)] = style_controlled(group, ("length",), BradleyTerryParameters(), ())
    changes = dict(
        zip(
            adjusted.ratings.entrants,
            adjusted.ratings.rating - adjusted.plain.rating,
            strict=True,
        )
    )
    assert found.of is not None
    assert found.value == pytest.approx(changes[found.of])
    assert abs(changes[found.of]) == pytest.approx(max(map(abs, changes.values())))
    assert found.n == 24


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
