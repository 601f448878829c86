"""What reading commands have in common."""

import pytest

from commands.cli.shared.views import ignored_variables


@pytest.mark.parametrize(
    ("name", "value", "note"),
    [
        ("TOURNEY_ELO_K", "32", "`tourney project elo --k 32` does"),
        ("TOURNEY_ELO_K_SWEEP", "[1,4]", "`tourney project elo --k-sweep 1,4` does"),
        ("TOURNEY_ELO_KK", "32", "[elo] has no key 'kk'"),
        ("TOURNEY_BRADLEY_TERRY_TIES", "half", "`tourney project bt --ties half` does"),
        (
            "TOURNEY_BRADLEY_TERRY_LEVEL",
            "0.9",
            "it counts once `tourney run` or `tourney apply` recorded it",
        ),
    ],
)
def test_a_variable_that_reading_ignores_is_told(name: str, value: str, note: str) -> None:
    """Whoever set it would take the recorded K for theirs."""
    assert [*ignored_variables({name: value})] == [f"{name} changes nothing here: {note}"]


def test_variables_that_reading_follows_are_not_told() -> None:
    """They name the ledger and the tournament; other programs have variables of their own."""
    known = ("TOURNEY_LEDGER", "TOURNEY_TOURNAMENT_ID", "TOURNEY_PORT", "HOME")

    assert not [*ignored_variables(dict.fromkeys(known, "x"))]
