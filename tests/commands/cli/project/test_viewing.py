"""`tourney view` and `annotate` find what they show, and votes are there for every projection."""

import json
import re
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from commands.importing.votes import open_ballot_box
from ledger.events.imports import BattlesImported, ImportedBattle, SampleDesign, battles_stream
from ledger.events.registration import TournamentOpened
from ledger.identity import Dimension
from ledger.store import Ledger
from projections.fold import fold
from projections.tournament.folding import tournament_of
from tests.support.builders.events import STREAM, entrant, key, known, opened, prompt, responses
from tests.support.builders.waves import look
from tests.support.builders.worlds import RUBRICS, Fate, become, history, matches_of
from tests.support.command_line.launching import launch

OPENING = opened(
    prompts=[prompt(f"p{n:02}") for n in range(12)],
    entrants=[entrant("zoe"), entrant("amy")],
    rubrics=RUBRICS,
)

CHANGED = opened(
    prompts=[prompt(f"p{n:02}") for n in range(12)],
    entrants=[entrant("zoe", temperature=0.5), entrant("amy")],
    rubrics=RUBRICS,
    opening=2,
)

FATES: tuple[Fate, ...] = (*("a", "a", "b", "b") * 5, *("inconsistent", "inconsistent") * 2)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Give a folder with a ledger of two dimensions: zoe wins on every other prompt."""
    with Ledger.open(tmp_path / "tournament.db") as ledger:
        ledger.append(STREAM, history(OPENING, *FATES))
    return tmp_path


def vote(
    place: Path, name: str, design: SampleDesign = "random", dimension: str = "utility"
) -> None:
    """Let ann prefer what stands left, on each pair that is drawn."""
    with Ledger.open(place / "tournament.db") as ledger:
        state = fold(tournament_of(STREAM), ledger.read())
        box = open_ballot_box(
            ledger, state, name, "ann", dimension=Dimension(dimension), design=design
        )
        for number in range(len(box.ballots)):
            box.cast(number, "a", n_before=0)


def project(place: Path, *words: str) -> str:
    """Return what a projection prints, or why it does not."""
    done = launch(place, "project", *words)
    return done.stdout or done.stderr


def test_votes_are_taken_at_once(place: Path) -> None:
    """Agreement and corrected ratings need no further step."""
    vote(place, "votes")

    agreed = project(place, "agreement", "--truth", "votes")
    own = project(place, "agreement", "--name", "votes")
    rated = project(place, "bt", "--truth", "votes", "--dimension", "utility")

    on_factuality, _, on_utility = agreed.partition("utility")
    assert "ann" not in on_factuality
    assert "Cohen's kappa" in on_utility
    assert "reference, ann" in on_utility
    assert re.search(r"tied share +0\.000 .* 12  pairs", own)
    assert "utility: 12 votes of 'votes' on 12 prompts" in rated


def test_votes_that_are_compared_with_no_judge_are_counted(tmp_path: Path) -> None:
    """Five of 29 were dropped without a word: letter-identical pairs, which no judge is asked."""
    opening = opened(
        prompts=[prompt(f"p{n}") for n in range(4)], entrants=[entrant("zoe"), entrant("amy")]
    )
    texts = {(who, f"p{n}"): "same" if n < 2 else who for who in ("zoe", "amy") for n in range(4)}
    events = [*opening, *responses(known(*opening), texts)]
    (_, _, third, _) = matches_of(known(*events))
    votes = [
        ImportedBattle("zoe", "amy", "model_a", None, f"p{n}", "human", "ann") for n in range(5)
    ]
    imported = BattlesImported.of(
        votes, file_digest=key("votes"), mapping=("plain", 1), chunk=1, n_skipped=0
    )
    with Ledger.open(tmp_path / "tournament.db") as ledger:
        ledger.append(STREAM, [*events, *become(third, "a")])
        ledger.append(battles_stream("votes"), [imported])

    said = " ".join(project(tmp_path, "agreement", "--truth", "votes").split())

    assert "2 votes of 'votes' left out: both responses are identical." in said
    assert "2 votes of 'votes' left out: no judge has an outcome there." in said


def test_votes_on_prompts_of_other_names_are_refused(place: Path) -> None:
    """A table of zeros would be taken for a judge with whom nobody agrees."""
    rows = [f"q{n},base,tuned,model_a,human,ann" for n in range(9)]
    head = "question_id,model_a,model_b,winner,source,judge_model"
    (place / "votes.csv").write_text("\n".join([head, *rows]), encoding="utf-8")
    launch(place, "import", "battles", "votes.csv", "--name", "others")

    said = " ".join(project(place, "agreement", "--truth", "others").split())

    assert "'q0' is no prompt_id," in said
    assert said.endswith("correct question_id, and import again")


def test_votes_correct_what_they_are_on_and_were_drawn_for(place: Path) -> None:
    """Else the correction would be none."""
    vote(place, "votes")
    vote(place, "hard", "disagreement")

    other = project(place, "bt", "--truth", "votes")
    drawn = project(place, "bt", "--truth", "hard", "--dimension", "utility")

    assert "votes on utility: add --dimension utility" in other
    assert "draw at random: `tourney annotate` without" in drawn


def test_intervals_by_votes_are_wider_after_looks(place: Path) -> None:
    """The judge that they correct was looked at, whoever corrects it."""
    vote(place, "votes")
    asked = ("project", "bt", "--truth", "votes", "--dimension", "utility", "--json")

    def widths() -> list[float]:
        rows = json.loads(launch(place, *asked).stdout)["rows"]
        return [row["high"] - row["low"] for row in rows if row["low"] is not None]

    before = widths()
    with_looks = json.dumps({"judging": {"looks": 4}, "pilot": None})
    with Ledger.open(place / "tournament.db") as held:
        first = next(each for each in OPENING if isinstance(each, TournamentOpened))
        held.append(STREAM, [replace(first, configuration=with_looks, opening=2)])
        state = fold(tournament_of(STREAM), held.read())
        held.append(STREAM, [look(state, dimension="utility", widening=1.5)])

    assert before
    assert widths() == pytest.approx([1.5 * width for width in before])


def test_votes_on_two_dimensions_that_a_merge_brings_together_stay_apart(
    place: Path, tmp_path: Path
) -> None:
    """Two people at two machines, each with a copy, and one name of the set by default."""
    there = tmp_path / "there"
    there.mkdir()
    shutil.copy(place / "tournament.db", there)
    vote(place, "votes")
    vote(there, "votes", dimension="factuality")

    launch(place, "merge", str(there / "tournament.db"))
    rated = project(place, "bt", "--truth", "votes")

    assert "factuality: 12 votes of 'votes' on 12 prompts" in rated
    assert "utility: 12 votes of 'votes' on 12 prompts" in rated


def test_votes_on_an_entrant_that_was_changed_since_are_left_out(place: Path) -> None:
    """Its new responses are other texts, on which nobody has voted."""
    vote(place, "votes")
    with Ledger.open(place / "tournament.db") as held:
        held.append(STREAM, history(CHANGED, *FATES)[: 2 * len(FATES)])

    rated = project(place, "bt", "--truth", "votes", "--dimension", "utility")
    agreed = project(place, "agreement", "--truth", "votes")

    assert "no vote on responses that compete now" in rated
    assert "12 votes of 'votes' left out" in agreed


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("annotate --annotator ann", "choose one with --dimension: factuality, util"),
        ("annotate --annotator ann --dimension utility --name a/b", "use only letters, digits"),
        ("view --tournament cup", "holds no tournament 'cup'"),
        ("project agreement --name votes --truth votes", "--truth compares a tournament's judges"),
    ],
)
def test_what_cannot_be_shown_is_told(place: Path, words: str, why: str) -> None:
    """Before anything is served."""
    vote(place, "votes")

    done = launch(place, *words.split())

    assert done.returncode != 0
    assert why in done.stderr
