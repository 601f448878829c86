"""What `project elo` rates by, and what is said beside the standings; goldens show the rest."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from commands.cli.project.elo import elo_table
from commands.cli.tables.table import Table
from commands.reading.parameters import elo_parameters, settings_of
from ledger.events.ratings import EloParameters, TieRule
from ledger.events.registration import TournamentOpened
from ledger.events.registry import Event
from ledger.identity import Dimension, JudgeId
from ledger.store import Ledger
from projections.battles.columns import battles_of
from projections.ratings.standings import Standings, standings
from projections.tournament.compared import ComparedBattle
from projections.tournament.settlement import Compared
from tests.support.builders.commands import JUDGE
from tests.support.builders.events import STREAM, opened
from tests.support.builders.worlds import Fate, cup, history, settled
from tests.support.command_line.launching import launch
from tests.support.specification import after

PLAIN = EloParameters(permutations=2, k_sweep=())
SAMPLED = replace(PLAIN, bootstraps=20)
TIE_RULES: tuple[TieRule, ...] = ("drop", "half")


def rated(
    fates: Sequence[Fate] = (), elo: EloParameters = PLAIN, *, n_prompts: int = 2
) -> Standings:
    """Return the standings of a cup of three in which battles ended so."""
    state = after(*history(cup(n_prompts), *fates))
    return of_battles(settled(state), elo, [each.entrant_id for each in state.roster])


def of_battles(
    battles: Sequence[Compared], elo: EloParameters, roster: Sequence[str] = ()
) -> Standings:
    """Return the standings of battles."""
    return standings(Dimension("factuality"), battles_of(battles), roster, elo)


def shown(fates: Sequence[Fate] = (), elo: EloParameters = PLAIN, *, n_prompts: int = 2) -> Table:
    """Return the table of a cup."""
    return elo_table([rated(fates, elo, n_prompts=n_prompts)], elo, JUDGE)


def test_an_entrant_without_a_match_is_named_and_not_rated() -> None:
    """The initial rating would look like a result, and null is what nothing was found for."""
    table = shown(elo=replace(PLAIN, k_sweep=(4.0,)))

    empty = {(row["rating"], row["k_4"], row["ci95_low"], row["ci95_high"]) for row in table.rows}
    assert empty == {(None,) * 4}
    assert table.facts["intervals"] == {"factuality": None}
    assert "zoe has no rating on factuality: no decided battles." in table.notes


def test_groups_that_never_met_are_told() -> None:
    """One list of ratings reads as one ranking."""
    battles = [
        ComparedBattle("set", f"p{n}", n, a, b, "a" if n % 3 else "b")
        for n, (a, b) in enumerate([("s1", "s2"), ("w1", "w2")] * 8)
    ]
    apart, linked = (
        elo_table([of_battles(some, PLAIN)], PLAIN) for some in (battles, battles[::2])
    )

    said = "2 groups that never met; ratings compare only within a group: w1, w2; s1, s2."
    assert f"WARNING: factuality: {said}" in apart.notes
    assert apart.facts["groups"] == {"factuality": [["w1", "w2"], ["s1", "s2"]]}
    assert "never met" not in "".join(linked.notes)


def test_whoever_judged_stands_beside_the_ratings() -> None:
    """Another judge gives other numbers, and nothing else would tell why."""
    other = replace(JUDGE, judge_id=JudgeId("other"))
    alone, several = (elo_table([rated()], PLAIN, *by) for by in ((JUDGE,), (JUDGE, other)))

    assert (alone.notes[0], alone.facts["judge"]) == ("Judge: reference", "reference")
    assert several.notes[0] == "Judges, by majority: reference, other"
    assert several.facts["judge"] is None


FATES: Sequence[Fate] = ("b", "b", "b", "a", "a", "a")
ONE_PAIR: Sequence[Fate] = ("a", "pending", "pending")


def test_an_interval_is_named_by_what_was_resampled() -> None:
    """Which error an interval is of decides what may be concluded from it."""
    table = shown([*FATES] * 5, SAMPLED, n_prompts=10)

    assert any(row["ci95_low"] is not None for row in table.rows)
    assert "factuality: 95 % interval by 20 resamples of 10 prompts" in table.notes
    assert table.facts["intervals"] == {
        "factuality": {
            "kind": "bootstrap",
            "unit": "prompts",
            "level": 0.95,
            "n_resamples": 20,
            "n_prompts": 10,
        }
    }


@pytest.mark.parametrize(
    ("fates", "n_prompts", "why"),
    [
        ((), 2, "factuality: no 95 % intervals (at least 6 prompts with a decided pair are"),
        ([*ONE_PAIR, "a"], 2, "zoe: no interval on factuality (2 prompts: at least 6 are needed)."),
        ([*ONE_PAIR] * 10, 10, "zoe: no interval on factuality (prompts vary no more than match"),
    ],
)
def test_it_is_said_why_there_is_no_interval(
    fates: Sequence[Fate], n_prompts: int, why: str
) -> None:
    """A dash alone would leave the reader to guess, and zero width would be certainty."""
    notes = shown(fates, SAMPLED, n_prompts=n_prompts).notes

    assert sum(note.startswith(why) for note in notes) == 1
    assert not any("95 % interval by" in note for note in notes)


@pytest.mark.parametrize(
    ("fates", "said"),
    [
        (["a", "a", "a", "b", "tie"], None),
        (["a", "a", "a", "b", "inconsistent"], "1 of 5 judged pairs (20%) is left out"),
        (
            [*"aaab", "inconsistent", "inconsistent"],
            "WARNING: factuality: 2 of 6 judged pairs (33%) are left out",
        ),
        (["inconsistent"] * 6, "WARNING: factuality: 6 of 6 judged pairs (100%) are left out"),
    ],
)
def test_pairs_that_are_left_out_are_told(fates: list[Fate], said: str | None) -> None:
    """Without them ratings lie further apart, or there are none."""
    by_judge, by_jury = (elo_table([rated(fates)], PLAIN, *[JUDGE] * n).notes for n in (1, 2))

    if said is None:
        assert not [note for note in (*by_judge, *by_jury) if "left out" in note]
        return
    why = "the two orders disagree. `tourney project bt` counts their verdicts."
    assert sum(f"{said}, as in the published engine: {why}" in note for note in by_judge) == 1
    assert sum(f"{said}: no outcome has a majority." in note for note in by_jury) == 1


@pytest.mark.parametrize(("n_ties", "is_shown"), [(1, False), (2, True)])
def test_many_ties_bring_both_ratings_and_a_sentence(n_ties: int, is_shown: bool) -> None:
    """Above a fifth it matters what a tie counts; a fifth itself is not above it."""
    fates: list[Fate] = [*("a", "b", "a", "b")[: 5 - n_ties], *["tie"] * n_ties]  # type: ignore[list-item]
    tables = {ties: shown(fates, replace(PLAIN, ties=ties)) for ties in TIE_RULES}

    drop, half = tables["drop"].rows, tables["half"].rows
    titles = {ties: [each.heading for each in table.columns] for ties, table in tables.items()}
    said = {
        ties: "Ties are dropped by default" in "".join(tables[ties].notes) for ties in TIE_RULES
    }
    assert ("Ties as half" in titles["drop"]) == ("Ties dropped" in titles["half"]) == is_shown
    assert said == {"drop": True, "half": False}
    if is_shown:
        as_half = {row["entrant"]: row["rating_ties_half"] for row in drop}
        assert as_half == {row["entrant"]: row["rating"] for row in half}
        assert as_half != {row["entrant"]: row["rating"] for row in drop}
    assert tables["drop"].facts["tied_shares"] == {"factuality": n_ties / 5}


def configured_opening(elo: str) -> tuple[Event, ...]:
    """Return the events that open a tournament with these settings of Elo."""
    opening, *others = opened()
    assert isinstance(opening, TournamentOpened)
    return (replace(opening, configuration=f'{{"elo": {elo}}}'), *others)


@pytest.mark.parametrize(
    ("recorded", "chosen", "expected"),
    [
        ("{}", {}, (400, 16.0, ())),  # before there were intervals: they are free
        (
            '{"bootstraps": 50, "k": 24}',
            {"bootstraps": 0, "k": None, "k_sweep": (1, 4)},
            (0, 24.0, (1.0, 4.0)),
        ),
    ],
)
def test_what_is_chosen_goes_before_what_is_recorded(
    recorded: str, chosen: Mapping[str, object], expected: tuple[int, float, tuple[float, ...]]
) -> None:
    """As every option does; what is not chosen stays as recorded, or has its default."""
    state = after(*configured_opening(recorded))

    found = elo_parameters(settings_of(state, "elo"), chosen)

    assert (found.bootstraps, found.k, found.k_sweep) == expected


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ("1,x", "--k '1,x': write a number, or several as 1,4,8,32"),
        ("", "--k '': write a number"),
        ("0", "--k 0.0: must be above 0"),
        ("16,inf", "--k: must be at most 1,000,000"),
    ],
)
def test_what_is_no_k_is_told(tmp_path: Path, given: str, fault: str) -> None:
    """One value or several, the message names the option that was typed."""
    with Ledger.open(tmp_path / "tournament.db") as ledger:
        ledger.append(STREAM, configured_opening("{}"))

    refused = launch(tmp_path, "project", "elo", "--k", given)

    assert refused.returncode == 2
    assert fault in refused.stderr


def test_settings_that_no_run_recorded_yet_change_no_rating(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who reads a ledger alone, elsewhere or later, must get the same; the help says so."""
    with Ledger.open(tmp_path / "tournament.db") as ledger:
        ledger.append(STREAM, configured_opening('{"k": 24}'))
    (tmp_path / "tournament.toml").write_text(f'[tournament]\nid = "{STREAM}"\n[elo]\nk = 8\n')
    monkeypatch.setenv("TOURNEY_ELO_K", "32")

    shown = launch(tmp_path, "project", "elo")
    help_text = launch(tmp_path, "project", "elo", "--help").stdout

    assert "Elo, K = 24" in shown.stdout, shown.stderr
    assert "[elo] and TOURNEY_ELO_K change nothing here until the next" in " ".join(
        help_text.split()
    )
