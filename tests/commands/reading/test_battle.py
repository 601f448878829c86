"""What a reader names is found, or the error says the nearest name."""

from collections.abc import Sequence

import pytest

from commands.errors import ConfigurationError
from commands.reading.battle import pairings_of_battle
from projections.tournament.state import Tournament
from tests.support.builders.events import entrant, known, opened, prompt, rubric
from tests.support.builders.worlds import RUBRICS, cup, planned_pairings

PAIR = known(*opened(rubrics=RUBRICS))
CUP = known(*cup())


def refusal(state: Tournament, name: str, *entrants: str) -> str:
    """Return why a battle is not found."""
    with pytest.raises(ConfigurationError) as caught:
        pairings_of_battle(state, name, entrants)
    return str(caught.value)


@pytest.mark.parametrize("entrants", [(), ("tuned", "base")])
def test_two_entrants_need_not_be_named(entrants: Sequence[str]) -> None:
    """There is only one battle on the prompt, on each dimension."""
    found = pairings_of_battle(PAIR, "p1", entrants)

    assert [each.rubric.dimension for each in found] == ["factuality", "utility"]
    assert {each.entrants for each in found} == {frozenset({"base", "tuned"})}


def test_a_battle_is_named_by_the_start_of_its_id() -> None:
    """As git does: what is listed need not be copied whole."""
    every = planned_pairings(CUP)

    assert [pairings_of_battle(CUP, each.battle_id[:12]) for each in every] == [
        (each,) for each in every
    ]
    assert "begins the ids of 6 battles; give more" in refusal(CUP, "")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("p11",), "prompt or battle 'p11' is not known; did you mean 'p1'?"),
        (("p9x", "zoe", "kim"), "prompt 'p9x' is not known; "),
        (("p1", "zoé", "kim"), "entrant 'zoé' is not known; did you mean 'zoe'?"),
        (("p1",), "name the two entrants after 'p1'; known: zoe, amy, kim"),
        (("p1", "zoe"), "name the two entrants"),
        (("p1", "zoe", "zoe"), "name the two entrants"),
    ],
)
def test_an_unknown_name_is_an_error_with_the_nearest_one(words: tuple[str, ...], why: str) -> None:
    """A typing error is put right at a glance."""
    assert why in refusal(CUP, *words)


def test_a_prompt_that_no_dimension_judges_has_no_battle() -> None:
    """The dimension needs a gold answer."""
    state = known(*opened(prompts=[prompt(gold=None)], rubrics=[rubric()]))

    assert "no gold answer" in refusal(state, "p1")


def test_a_long_bank_is_not_listed_whole() -> None:
    """A thousand ids would hide the message."""
    bank = [prompt(f"p{n}") for n in range(30)]
    state = known(*opened(prompts=bank, entrants=[entrant("a"), entrant("b")]))

    assert "p7, and 22 more" in refusal(state, "???")
