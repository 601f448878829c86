"""Ratings from the command line: Bradley-Terry, what changed since, and marks read as scores."""

import json
from collections.abc import Sequence
from functools import partial
from itertools import combinations, cycle
from math import log10
from pathlib import Path

import pytest
from msgspec.structs import replace

from commands.cli.project.bt_ratings import HowRated, with_imported
from commands.cli.shared.reading import pinned, read_verdicts
from commands.cli.shared.selection import Selection
from ledger.events.ratings import BradleyTerryParameters
from ledger.events.registration import TournamentOpened
from ledger.store import Ledger
from projections.battles.columns import Battles
from projections.ratings.prediction_powered import rate_with_votes
from tests.support.builders.battles import Battle
from tests.support.builders.events import STREAM, entrant, known, opened, prompt
from tests.support.builders.votes import election
from tests.support.builders.worlds import (
    TIE,
    A,
    B,
    Fate,
    answered,
    become,
    court,
    heard,
    marked,
    matches_of,
)
from tests.support.command_line.launching import Tourney, launch
from tests.support.command_line.settled import fields

CONFIGURATION = '{"elo": {"permutations": 2}, "bradley_terry": {"level": 0.9}}'
SAID = [A, TIE, A, B, A, B]  # zoe-amy, zoe-kim, amy-kim, and the same of another prompt
PLAIN = BradleyTerryParameters()
SOFT = HowRated(PLAIN)
WINNERS = ("model_a", "model_b")
PREFERRED = """model_a,model_b,winner,pref,question_id,source,judge_model
new,old,model_a,0.2,q1,llm-judge,opus
old,new,tie,0.5,q2,llm-judge,opus
"""
VOTES_BY_SOURCE = """model_a,model_b,winner,question_id,source,judge_model
zoe,amy,model_a,q1,human,
amy,zoe,model_a,q2,human,
zoe,gpt,model_a,q3,human,
gpt,zoe,model_a,q4,human,
new,gpt,model_a,q5,llm-judge,opus
gpt,new,model_a,q6,llm-judge,opus
new,gpt,no verdict,q7,llm-judge,opus
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder with a ledger of a tournament, of which the last verdict is still to come."""
    opening, *others = heard(court(2), SAID, [B, A])
    assert isinstance(opening, TournamentOpened)
    with Ledger.open(tmp_path / "tournament.db") as ledger:
        ledger.append(STREAM, [replace(opening, configuration=CONFIGURATION), *others])
    (tmp_path / "votes.csv").write_text(VOTES_BY_SOURCE)
    return tmp_path


@pytest.fixture
def tourney(folder: Path) -> Tourney:
    """Give a function that runs the command line in the folder."""
    return partial(launch, folder)


def before_the_last_pair(folder: Path) -> str:
    """Return the position before the first judge's last pair was decided."""
    with Ledger.read_only(folder / "tournament.db") as ledger:
        positions = [row.position for row in ledger.rows() if row.type == "PairReconciled"]
    return str(positions[5] - 3)


def ratings(tourney: Tourney, *options: str) -> dict[str, float | None]:
    """Return ratings by entrant, on the only dimension."""
    done = tourney("project", "bt", "--json", *options)
    assert done.returncode == 0, done.stderr
    return {row["entrant"]: row["rating"] for row in fields(done)["rows"]}


def test_a_tournament_is_rated_as_it_was_set_up(tourney: Tourney) -> None:
    """By the settings on record, which options overrule."""
    done = fields(tourney("project", "bt", "--json"))
    other = fields(tourney("project", "bt", "--anchor", "amy", "--json"))

    assert (done["tournament"], done["judge"]) == (STREAM, "ann")
    assert [each["parameters"]["anchor"] for each in (done, other)] == [None, "amy"]
    assert done["parameters"]["level"] == 0.9
    rows = {row["entrant"]: row for row in done["rows"]}
    assert sum(row["rating"] for row in rows.values()) == pytest.approx(3000)
    assert [row["entrant"] for row in other["rows"]] == [row["entrant"] for row in done["rows"]]
    assert {row["no_interval"] for row in rows.values()} == {"2 prompts: at least 6 are needed"}


def test_ratings_hang_from_the_anchor(tourney: Tourney) -> None:
    """At its value, or at the mean's; a = in a name belongs to the name."""
    assert ratings(tourney, "--anchor", "amy=1400")["amy"] == pytest.approx(1400)
    assert ratings(tourney, "--anchor", "amy")["amy"] == pytest.approx(1000)
    refused = tourney("project", "bt", "--anchor", "a=my")
    assert "the anchor 'a=my' is not an entrant; known: zoe, amy, kim" in refused.stderr


def test_dimensions_are_rated_together_by_weights(tourney: Tourney) -> None:
    """Each of the roster stands in the table, rated or with the reason."""
    assert set(ratings(tourney, "--overall", "factuality=2")) == {"zoe", "amy", "kim"}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--level 2", "--level was withdrawn; intervals are cluster-robust, with"),
        ("--interval bayesian", "--interval was withdrawn; intervals are cluster-robust"),
        ("--overall fact=1", "'fact' is not known; did you mean 'factuality'?"),
        ("--overall factuality", "write it as factuality=2,utility=1"),
        ("--control color", "'color' is not known; known: length, headers, lists, bold, style"),
        ("--control length --overall factuality=1", "choose one of --overall, --control"),
        ("--name people", "no battles were imported as 'people'"),
        ("--with people", "no battles were imported as 'people'"),
        ("--name people --judge ann", "apply to a tournament's battles: leave out --name"),
        ("--prefs hard", "--prefs needs imported battles: add --name or --with"),
        ("--diff yesterday", "--diff 'yesterday' is neither a position nor a time"),
        ("--as-of yesterday", "--as-of 'yesterday' is neither a position nor a time"),
        ("--temperature 0.3", "add --parser judgearena-score@1 --policy concatenate"),
        ("--temperature 0.3 --control style", "works with neither --overall nor --control"),
        ("--temperature 0 --name people", "--temperature 0: a temperature must be above 0"),
        ("--temperature nan --name people", "--temperature nan: a temperature must be above 0"),
        (
            "--temperature 1 --prefs hard --name people",
            "leave out --ties davidson and --prefs hard",
        ),
        (
            "--prefs soft --ties davidson --name people",
            "--ties davidson, which needs who won",
        ),
    ],
)
def test_what_cannot_be_rated_is_refused(tourney: Tourney, words: str, why: str) -> None:
    """By what was wrong, and what there is instead."""
    done = tourney("project", "bt", *words.split())

    assert done.returncode in {1, 2}
    assert why in done.stderr


def test_entrants_stand_among_human_anchors(tourney: Tourney) -> None:
    """Of imported battles alone, or together with the tournament's."""
    tourney("import", "battles", "votes.csv", "--name", "people")

    alone = fields(tourney("project", "bt", "--name", "people", "--json"))
    together = fields(tourney("project", "bt", "--with", "people", "--json"))
    shown = tourney("project", "bt", "--name", "people").stdout
    exported = fields(tourney("export", "elo-ratings", "--name", "people"))

    sources = {row["entrant"]: row["source"] for row in alone["rows"]}
    assert sources == {"zoe": "human", "amy": "human", "gpt": "human", "new": "evaluated"}
    assert {row["model"]: row["source"] for row in exported["ratings"]} == sources
    assert (exported["arena"], exported["judge_model"]) == ("people", "opus")
    assert alone["mae"]["people"] is None
    assert (alone["battles"], alone["as_of"]) == ("people", together["as_of"])
    sources = {row["entrant"]: row["source"] for row in together["rows"]}
    assert (sources["kim"], sources["zoe"]) == ("evaluated", "human")
    assert together["mae"]["factuality"] > 0
    assert "people: 7 battles = 6 decided + 0 tied + 1 without a verdict" in shown
    assert "people: no MAE (no two anchors are compared by human votes and linked by" in shown


def test_what_is_appended_between_two_reads_stays_out(folder: Path, tourney: Tourney) -> None:
    """A tournament and others' battles are read one after the other, as of one position."""
    now = Selection(ledger=folder / "tournament.db")
    header, _, _ = VOTES_BY_SOURCE.partition("\n")
    (folder / "more.csv").write_text(f"{header}\nkim,zoe,model_a,q8,human,\n")
    tourney("import", "battles", "votes.csv", "--name", "people")
    selection = pinned(now)
    source = read_verdicts(selection)

    before = with_imported(source, selection, "people", SOFT).table()
    tourney("import", "battles", "more.csv", "--name", "people")

    assert with_imported(source, selection, "people", SOFT).table() == before
    after = with_imported(source, pinned(now), "people", SOFT).table()
    assert after.rows != before.rows


def test_preferences_count_as_such_or_as_who_won(folder: Path, tourney: Tourney) -> None:
    """And the result says which, also where the model of ties leaves no choice."""
    (folder / "judged.csv").write_text(PREFERRED)
    tourney("import", "battles", "judged.csv", "--name", "judged")

    options = ((), ("--prefs", "hard"), ("--ties", "davidson"), ("--temperature", "0.6"))
    soft, hard, davidson, steep = (
        fields(tourney("project", "bt", "--name", "judged", "--json", *each)) for each in options
    )
    shown = tourney("project", "bt", "--name", "judged", "--temperature", "0.6").stdout

    named = ("prefs", "temperature", "made_at")
    said = [tuple(each[name] for name in named) for each in (soft, hard, davidson, steep)]
    as_given = [("soft", None, None), ("hard", None, None), ("hard", None, None)]
    assert said == [*as_given, ("soft", 0.6, 0.3)]
    gaps = [each["rows"][0]["rating"] - each["rows"][-1]["rating"] for each in (soft, hard)]
    assert gaps == pytest.approx([400 * log10(1.3 / 0.7), 400 * log10(1.5 / 0.5)])
    assert "2 with a preference count as preferences (soft)" in shown
    assert "at temperature 0.6, from preferences made at 0.3." in shown


@pytest.mark.parametrize("table", ["elo", "bt", "winrates"])
def test_what_changed_since_a_position_is_shown(folder: Path, tourney: Tourney, table: str) -> None:
    """Then, now and the change; nothing else is another table."""
    since = before_the_last_pair(folder)
    number = "win_rate" if table == "winrates" else "rating"

    done = fields(tourney("project", table, "--diff", since, "--json"))
    then = fields(tourney("project", table, "--as-of", since, "--json"))
    now = fields(tourney("project", table, "--json"))

    names = ("entrant_a", "entrant_b") if table == "winrates" else ("entrant",)
    was = {tuple(row[name] for name in names): row[number] for row in then["rows"]}
    is_ = {tuple(row[name] for name in names): row[number] for row in now["rows"]}
    assert done["since"] == int(since)
    for row in done["rows"]:
        name = tuple(row[each] for each in names)
        before, after = row[f"{number}_then"], row[f"{number}_now"]
        assert (before, after) == (was[name], is_[name])
        if before is not None and after is not None:
            assert row[f"{number}_change"] == after - before
    assert any(row[f"{number}_then"] != row[f"{number}_now"] for row in done["rows"])


def test_another_judge_is_no_change(folder: Path, tourney: Tourney) -> None:
    """A difference of two judges would be taken for one of time."""
    played, first, second = court(2), heard(court(2), [], [B, A]), heard(court(2), SAID)
    with Ledger.open(folder / "two.db") as ledger:
        ledger.append(STREAM, [*first, *second[len(played) :]])

    refused = tourney("project", "winrates", "--diff", str(len(first)), "-l", "two.db")
    done = tourney("project", "winrates", "--diff", "30", "--judge", "bob", "-l", "two.db")

    assert refused.returncode == 2
    assert "the judge was 'bob' then and is 'ann' now; choose one with --judge" in refused.stderr
    assert done.returncode == 0, done.stderr


def test_ratings_are_exported_and_imported_in_judgearenas_shape(
    folder: Path, tourney: Tourney
) -> None:
    """What is read back is what was written, digit for digit."""
    exported = tourney("export", "elo-ratings", "-o", "elo_ratings.json")
    imported = fields(tourney("import", "elo-ratings", "elo_ratings.json", "--json"))

    written = json.loads((folder / "elo_ratings.json").read_text())
    assert exported.returncode == 0, exported.stderr
    assert (written["arena"], written["judge_model"], written["level"]) == (STREAM, "ann", 0.9)
    names = {"entrant": "model"}
    rows = [
        {names.get(key, key): row[key] for key in row if key != "set"} for row in imported["rows"]
    ]
    thin = {"group": 1, "no_interval": "2 prompts: at least 6 are needed"}
    assert [{**row, **thin} for row in rows] == written["ratings"]
    assert len(rows) == 3
    assert "within a group" not in exported.stderr


def test_an_export_says_who_cannot_be_compared(folder: Path, tourney: Tourney) -> None:
    """Readers of JudgeArena's file take it for one list; who writes it must know better."""
    (folder / "islands.csv").write_text(
        "model_a,model_b,winner,question_id,source\n"
        + "".join(f"{pair},{winner},q,human\n" for pair in ("a,b", "y,z") for winner in WINNERS)
    )
    tourney("import", "battles", "islands.csv", "--name", "islands")

    done = tourney("export", "elo-ratings", "--name", "islands")

    assert [row["group"] for row in json.loads(done.stdout)["ratings"]] == [1, 1, 2, 2]
    assert "islands: 2 groups; ratings compare only within a group." in done.stderr
    assert "a, b not comparable with others." in done.stderr


BY_MARKS = ("--parser", "judgearena-score", "--policy", "concatenate")
UP, DOWN = (
    ((8, 6), (6, 8)),
    ((5, 7), (7, 5)),
)  # of a against b, in both orders
GIVEN = [UP, UP, DOWN, DOWN, UP, UP]  # zoe-amy, zoe-kim, amy-kim, and the same of p2
VOTES_ON_PROMPTS = """model_a,model_b,winner,question_id
zoe,amy,model_a,p1
zoe,kim,model_a,p1
kim,amy,model_a,p1
zoe,amy,model_b,p2
zoe,kim,model_b,p2
amy,kim,model_b,p2
amy,kim,tie,p2
zoe,kim,model_a,elsewhere
"""
JUDGED = "model_a,model_b,winner,pref,question_id,source,judge_model\n" + "".join(
    f"new,old,model_a,0.4,q{n},llm-judge,opus\n" for n in range(12)
)
VOTED = "model_a,model_b,winner,question_id\n" + "".join(
    f"new,old,{'model_b' if n < 4 else 'model_a'},q{n}\n" for n in range(12)
)


@pytest.fixture(scope="module")
def tourney_with_marks(tmp_path_factory: pytest.TempPathFactory) -> Tourney:
    """Give the command line beside a tournament that was judged by marks, and votes."""
    folder = tmp_path_factory.mktemp("marks")
    opening, *others = marked(court(1), GIVEN)
    assert isinstance(opening, TournamentOpened)
    with Ledger.open(folder / "tournament.db") as ledger:
        ledger.append(STREAM, [replace(opening, configuration="{}"), *others])
    for name, text in (("votes", VOTES_ON_PROMPTS), ("judged", JUDGED), ("voted", VOTED)):
        (folder / f"{name}.csv").write_text(text)
        launch(folder, "import", "battles", f"{name}.csv", "--name", name)
    return partial(launch, folder)


def test_a_tournaments_marks_are_calibrated_against_votes(tourney_with_marks: Tourney) -> None:
    """People agreed with 4 of 6 pairs, in both orders 2 marks apart: sigma(2 T) = 2 / 3."""
    found = fields(tourney_with_marks("project", "bt", "--fit-temperature", "votes", "--json"))

    (row,) = found["rows"]
    assert (found["schema"], found["judge"], found["against"]) == (
        "tourney/temperature@1",
        "ann",
        "votes",
    )
    assert row["temperature"] == pytest.approx(0.34657359, abs=1e-6)
    assert row["low"] < row["temperature"] < row["high"]
    assert (row["n_prompts"], row["n_pairs"], row["n_ties"]) == (2, 12, 2)
    assert row["log_likelihood_usual"] < row["log_likelihood"] < 0


def test_imported_preferences_are_calibrated_against_votes(tourney_with_marks: Tourney) -> None:
    """Odds of 3 : 2 that people made 2 : 1: marks are to be read a little more steeply."""
    words = ("project", "bt", "--name", "judged", "--fit-temperature", "voted")
    done, found = tourney_with_marks(*words), fields(tourney_with_marks(*words, "--json"))

    (row,) = found["rows"]
    assert "preferences are taken as made at JudgeArena's temperature 0.3." in done.stdout
    assert "clusters: prompts" in done.stdout
    assert row["temperature"] == pytest.approx(0.3 * 1.7095113, abs=1e-6)  # log 2 / log 1.5
    assert found["made_at"] == 0.3


def test_a_tournament_is_rated_by_marks(tourney_with_marks: Tourney) -> None:
    """Each order took sigma(2 T) or the rest of it; among anchors, too."""
    alone = fields(tourney_with_marks("project", "bt", "--temperature", "0.3", *BY_MARKS, "--json"))
    whole = fields(tourney_with_marks("project", "bt", *BY_MARKS, "--json"))
    among = fields(
        tourney_with_marks(
            "project", "bt", "--temperature", "0.3", *BY_MARKS, "--with", "votes", "--json"
        )
    )
    shown = tourney_with_marks("project", "bt", "--temperature", "0.3", *BY_MARKS).stdout

    spread = [each["rows"][0]["rating"] - each["rows"][-1]["rating"] for each in (alone, whole)]
    assert 0 < spread[0] < spread[1]
    assert (alone["temperature"], among["temperature"], among["made_at"]) == (0.3, 0.3, 0.3)
    assert {row["n_battles"] for row in alone["rows"]} == {8}
    assert {row["source"] for row in among["rows"]} == {"unknown"}
    assert "Soft scores: a judge's scores at temperature 0.3." in shown


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--name voted --temperature 1", "--temperature: 'voted' has no judge's preferences"),
        ("--fit-temperature nobody", "no battles were imported as 'nobody'"),
        ("--fit-temperature judged", "'judged' has no human votes"),
        ("--fit-temperature voted", "no human vote has a prompt and two entrants in common"),
        ("--name judged --fit-temperature voted --judge ann", "leave out --name"),
        ("--fit-temperature votes --pairs", "--fit-temperature rates nobody: leave out all"),
        ("--fit-temperature votes --truth votes", "--fit-temperature rates nobody: leave out"),
    ],
)
def test_what_tells_no_temperature_is_refused(
    tourney_with_marks: Tourney, words: str, why: str
) -> None:
    """By what was wrong, and what there is instead."""
    done = tourney_with_marks("project", "bt", *words.split())

    assert done.returncode in {1, 2}
    assert why in done.stderr


def test_biases_are_of_every_judge_or_of_the_one_that_is_named(tourney: Tourney) -> None:
    """Each figure with what it is in, or the reason why there is none, in data and beside."""
    both = fields(tourney("project", "bias", "--json"))
    ann = fields(tourney("project", "bias", "--judge", "ann", "--json"))
    shown = tourney("project", "bias", "--judge", "ann").stdout

    assert both["schema"] == "tourney/bias@1"
    assert {row["judge"] for row in both["rows"]} == {"ann", "bob"}
    assert ann["rows"] == [row for row in both["rows"] if row["judge"] == "ann"]
    slot, *_ = ann["rows"]
    assert (slot["measure"], slot["value"], slot["n"]) == ("slot preference", 0.0, 12)
    [headers] = (row for row in ann["rows"] if row["measure"] == "headers")
    assert (headers["value"], headers["reason"]) == (None, "the same in all pairs of responses")
    assert "headers, lists, bold" in shown
    assert "Slot preference: the share of verdicts for slot A minus that for slot B" in " ".join(
        shown.split()
    )


def test_fragility_is_of_the_tournament_or_of_an_imported_set(tourney: Tourney) -> None:
    """By each judge and rule; the table names a few of the prompts, and data all."""
    tourney("import", "battles", "votes.csv", "--name", "people")

    own = fields(tourney("project", "fragility", "--judge", "ann", "--json"))
    each_order = fields(tourney("project", "fragility", "--policy", "concatenate", "--json"))
    people = fields(tourney("project", "fragility", "--name", "people", "--json"))
    shown = tourney("project", "fragility", "--name", "people").stdout
    refused = tourney("project", "fragility", "--name", "people", "--judge", "ann")

    assert own["judge"] == "ann"
    assert [row["dimension"] for row in own["rows"]] == ["factuality"] * len(own["rows"])
    assert each_order["policy"] == "concatenate"
    assert people["battles"] == "people"
    assert [row["decisive"] for row in people["rows"]] == [[], [], []]  # all are level
    assert "no longer comparable" in shown
    assert refused.returncode == 2


def of_people(judged: Sequence[Battle], source: str) -> str:
    """Return battles as a CSV file, by people or by a judge."""
    took = {1.0: "model_a", 0.0: "model_b", 0.5: "tie"}
    lines = [
        f"{each.a},{each.b},{took[each.score]},{each.prompt},{source},"
        + ("opus" if source == "llm-judge" else "")
        for each in judged
    ]
    return "\n".join([VOTES_BY_SOURCE.partition("\n")[0], *lines, ""])


def rows_of(battles: Battles) -> list[Battle]:
    """Return battles one by one."""
    columns = (battles.a.tolist(), battles.b.tolist(), battles.score, battles.cluster.tolist())
    return [
        Battle(battles.entrants[a], battles.entrants[b], float(score), battles.prompts[cluster])
        for a, b, score, cluster in zip(*columns, strict=True)
    ]


def test_votes_correct_the_judge_of_an_imported_set(folder: Path, tourney: Tourney) -> None:
    """By another set, or by the same one that holds both."""
    drawn = election(3)
    (folder / "judged.csv").write_text(of_people(rows_of(drawn.voted.judged), "llm-judge"))
    (folder / "people.csv").write_text(of_people(rows_of(drawn.votes), "human"))
    tourney("import", "battles", "judged.csv", "--name", "judged")
    tourney("import", "battles", "people.csv", "--name", "people")
    corrected = rate_with_votes(drawn.voted, PLAIN).ratings

    found = fields(tourney("project", "bt", "--name", "judged", "--truth", "people", "--json"))
    pairs = tourney("project", "bt", "--name", "judged", "--truth", "people", "--pairs").stdout
    tourney("import", "battles", "people.csv", "--name", "judged")
    both = fields(tourney("project", "bt", "--name", "judged", "--truth", "judged", "--json"))

    ratings = {row["entrant"]: row["rating"] for row in found["rows"]}
    assert ratings == pytest.approx(dict(zip("abcd", corrected.rating.tolist(), strict=True)))
    assert found["correction"]["judged"]["n_votes"] == 120
    assert [found[name] for name in ("prefs", "temperature", "made_at")] == ["soft", None, None]
    assert "judged: 120 votes of 'people' on" in pairs
    assert [row["low"] for row in both["rows"]] == [row["low"] for row in found["rows"]]


ROSTER = ("zoe", "amy", "kim")
FATES: Sequence[Fate] = ("a", "b", "a", "tie", "inconsistent", "b", "a")


def judged_ledger(folder: Path, prompts: Sequence[str]) -> None:
    """Write a ledger of three entrants, judged on prompts."""
    opening = opened(
        prompts=[prompt(name) for name in prompts], entrants=[entrant(name) for name in ROSTER]
    )
    events = answered(opening)
    matches = matches_of(known(*events))
    outcomes = [each for match, fate in zip(matches, cycle(FATES)) for each in become(match, fate)]
    with Ledger.open(folder / "tournament.db") as ledger:
        ledger.append(STREAM, [*events, *outcomes])


def test_votes_on_some_entrants_alone_are_told_to_be_no_random_sample(tmp_path: Path) -> None:
    """They say how the judge errs there, and nowhere else; one without a vote is named."""
    prompts = [f"p{n}" for n in range(30)]
    judged_ledger(tmp_path, prompts)
    agreeing = {"a": 1.0, "b": 0.0}
    votes = [
        Battle("zoe", "amy", agreeing.get(FATES[3 * n % len(FATES)], float(n % 2)), name)
        for n, name in enumerate(prompts)
    ]
    (tmp_path / "votes.csv").write_text(of_people(votes, "human"))
    launch(tmp_path, "import", "battles", "votes.csv", "--name", "people")

    found = fields(launch(tmp_path, "project", "bt", "--truth", "people", "--json"))
    shown = launch(tmp_path, "project", "bt", "--truth", "people").stdout

    correction = found["correction"]["factuality"]
    assert (correction["doubts"], correction["without_vote"]) == (["entrants"], ["kim"])
    assert (
        "WARNING: factuality: the 30 battles voted on are no random sample of those judged, by"
        " their entrants (30 of 30 are on amy and zoe; a random sample has about 10)."
    ) in shown
    assert "WARNING: factuality: nobody voted on kim;" in shown


def test_votes_correct_the_judge_of_a_tournament(tmp_path: Path) -> None:
    """On each dimension; a judge that agrees with nobody is said to be no help."""
    prompts = [f"p{n}" for n in range(12)]
    judged_ledger(tmp_path, prompts)
    votes = [
        Battle(a, b, float((n + i) % 3 == 1), name)
        for n, name in enumerate(prompts)
        for i, (a, b) in enumerate(combinations(ROSTER, 2))
    ]
    (tmp_path / "votes.csv").write_text(
        of_people([*votes, votes[0]._replace(prompt="p99")], "human")
    )
    launch(tmp_path, "import", "battles", "votes.csv", "--name", "people")

    found = fields(launch(tmp_path, "project", "bt", "--truth", "people", "--json"))
    shown = launch(tmp_path, "project", "bt", "--truth", "people").stdout

    correction = found["correction"]["factuality"]
    assert (correction["n_votes"], correction["n_unmatched"]) == (36, 1)
    assert all(row["low"] < row["rating"] < row["high"] for row in found["rows"])
    assert "36 votes of 'people' (1 on other battles left out) on 12 prompts correct" in shown
    assert "the judge agrees too little with people to help" in shown
    assert "WARNING: factuality: the" not in shown  # of all pairs, none was chosen


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--truth people --with people", "--truth works with none of --overall, --control, --with"),
        ("--truth nobody", "no battles were imported as 'nobody'"),
        ("--truth judged", "--truth 'judged' has no human votes"),
        ("--truth people --ties davidson", "leave out the options for others"),
        ("--truth people", "the truth is known on 2 of the prompts"),
    ],
)
def test_what_votes_cannot_correct_is_refused(
    folder: Path, tourney: Tourney, words: str, why: str
) -> None:
    """Before anything is shown."""
    (folder / "judged.csv").write_text(PREFERRED)
    tourney("import", "battles", "judged.csv", "--name", "judged")
    votes = [Battle("zoe", "amy", 1.0, name) for name in ("p1", "p2")]
    (folder / "people.csv").write_text(of_people(votes, "human"))
    tourney("import", "battles", "people.csv", "--name", "people")

    done = tourney("project", "bt", *words.split())

    assert done.returncode in {1, 2}
    assert why in done.stderr
