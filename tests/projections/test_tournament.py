"""What a tournament is made of, as it is registered, corrected and brought back."""

import pytest

from ledger.identity import JudgeId
from projections.tournament.state import Tournament
from tests.builders import entrant, judge, known, opened, prompt, registrations, rubric


def names(tournament: Tournament) -> list[str]:
    """Return the roster's names."""
    return [each.entrant_id for each in tournament.roster]


def test_a_tournament_that_was_never_opened_is_empty() -> None:
    """`status` on a new ledger shows nothing rather than failing."""
    tournament = known()

    assert (tournament.roster, tournament.bank, tournament.dimensions) == ((), (), ())
    assert tournament.panel == ()
    assert (tournament.version, tournament.newest) == (0, None)


def test_an_opening_fixes_the_order_of_everything() -> None:
    """Pairs are named, listed and judged in the order that the user wrote down."""
    roster = [entrant("zoe"), entrant("amy")]
    prompts = [prompt("p2"), prompt("p1")]
    rubrics = [rubric("utility"), rubric("factuality")]
    panel = [judge("second"), judge("first")]

    tournament = known(*opened(entrants=roster, prompts=prompts, rubrics=rubrics, judges=panel))

    assert tournament.roster == tuple(roster)
    assert tournament.bank == tuple(prompts)
    assert tournament.dimensions == tuple(rubrics)
    assert tournament.panel == tuple(panel)


def test_only_the_newest_opening_holds() -> None:
    """A user who edits the configuration and runs again means the new one."""
    first = opened(prompts=[prompt("p1")])
    second = opened(prompts=[prompt("p1"), prompt("p2")], opening=2)

    tournament = known(*first, second[0], *registrations([prompt("p2")]))

    assert tournament.opening == second[0]
    assert [each.prompt_id for each in tournament.bank] == ["p1", "p2"]


def test_a_corrected_prompt_replaces_the_old_under_its_id() -> None:
    """A bank never holds a prompt twice, once right and once wrong."""
    wrong, right = prompt(gold="asprin"), prompt(gold="aspirin")
    second = opened(prompts=[right], opening=2)

    tournament = known(*opened(prompts=[wrong]), second[0], *registrations([right]))

    assert tournament.bank == (right,)


def test_an_opening_before_its_registrations_names_what_is_there() -> None:
    """A run killed between an opening and its registrations can still be looked at."""
    opening, *registered = opened(prompts=[prompt("p1"), prompt("p2")])

    tournament = known(opening, registered[1])

    assert tournament.bank == (prompt("p2"),)
    assert tournament.roster == ()


def test_a_removed_entrant_leaves_the_roster() -> None:
    """What an opening does not name does not compete, although it is known."""
    everybody = opened(entrants=[entrant("base"), entrant("tuned"), entrant("poe")])
    fewer = opened(entrants=[entrant("base"), entrant("poe")], opening=2)

    tournament = known(*everybody, fewer[0])

    assert names(tournament) == ["base", "poe"]


def test_going_back_to_an_earlier_configuration_registers_nothing() -> None:
    """What was known once stays known, so an opening alone brings it all back."""
    old, new = prompt(gold="asprin"), prompt(gold="aspirin")
    first = opened(prompts=[old])
    changed = opened(prompts=[new], entrants=[entrant("base"), entrant("poe")], opening=2)
    back = opened(prompts=[old], opening=3)

    tournament = known(
        *first, changed[0], *registrations([new], entrants=[entrant("poe")]), back[0]
    )

    assert tournament.bank == (old,)
    assert names(tournament) == ["base", "tuned"]


def test_what_is_registered_but_not_referenced_is_ignored() -> None:
    """Registrations may come early, or from a configuration that was given up."""
    strays = registrations(
        [prompt("stray")], [rubric("stray")], [entrant("stray")], [judge("stray")]
    )

    tournament = known(*strays, *opened())

    assert names(tournament) == ["base", "tuned"]
    assert [each.prompt_id for each in tournament.bank] == ["p1"]
    assert [each.dimension for each in tournament.dimensions] == ["factuality"]
    assert [each.judge_id for each in tournament.panel] == ["reference"]


def test_a_judge_is_found_by_its_name_on_the_panel() -> None:
    """A run names its judge; taking another silently would rate by other verdicts."""
    tournament = known(*opened(judges=[judge("first"), judge("second", model="other")]))

    assert tournament.judge(JudgeId("second")).model == "other"
    with pytest.raises(KeyError, match="third"):
        tournament.judge(JudgeId("third"))
