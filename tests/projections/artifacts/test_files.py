"""The files of a run and their bytes."""

import io
import json
import zipfile
from typing import NoReturn

import pytest

from ledger.events.ratings import RatingsPublished
from ledger.events.registry import Event
from projections.artifacts._report import report
from projections.artifacts.files import files_of, renderings_of
from projections.artifacts.results import results_of
from projections.fold import fold
from projections.tournament.state import tournament_of
from tests.builders import STREAM, known, opened, prompt, recorded, responses
from tests.projections.worlds import RUBRICS, cup, history, publication, results

NAMES = {
    "manifest.json",
    "matches/matches.jsonl",
    "verdicts/factuality.jsonl",
    "verdicts/utility.jsonl",
    "elo_results.json",
    "elo_per_perm.npz",
    "pairwise_winrates.csv",
    "battles.jsonl",
    "elo_ratings.json",
}
UNREADABLE_LINES = "one\ntwo\r\nthree\u2028four\u0085five\x00"


def refuse(constant: str) -> NoReturn:
    """Refuse what Python reads and JSON does not know."""
    raise AssertionError(constant)


def texts_of(path: str, content: bytes) -> list[bytes]:
    """Return the JSON texts of a file: itself, its lines, or none."""
    match path.rpartition(".")[2]:
        case "json":
            return [content]
        case "jsonl":
            return content.splitlines()
        case _:
            return []


def test_a_run_has_every_file_of_the_design() -> None:
    """Scripts of the customer open these paths."""
    files = files_of(results(*history(opened(rubrics=RUBRICS), "a", "tie")))

    assert set(files) == NAMES


def test_a_run_without_a_verdict_has_every_file_too() -> None:
    """A script must not have to guess which files are there."""
    files = files_of(results(*opened(rubrics=RUBRICS)))

    assert set(files) == NAMES
    assert files["battles.jsonl"] == files["matches/matches.jsonl"] == b""


def test_the_report_is_no_file_that_a_run_claims() -> None:
    """It is a rendering: better words in it must not look like a forgery."""
    found = results(*history(opened(rubrics=RUBRICS), "a"))

    assert renderings_of(found) == {"report.html": report(found).encode()}
    assert not renderings_of(found).keys() & files_of(found).keys()


def test_the_same_results_give_the_same_bytes() -> None:
    """A replay compares byte for byte, so no file may hold the time of its writing."""
    events = history(cup(), "a", "b", "tie", "inconsistent", "refused")

    first, second = files_of(results(*events)), files_of(results(*events))

    assert first == second


def test_the_archive_of_traces_holds_no_date() -> None:
    """A zip file dates its entries, which would make a replay differ from one minute on."""
    content = files_of(results(*history(cup(), "a")))["elo_per_perm.npz"]

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        dates = {entry.date_time for entry in archive.infolist()}

    assert dates == {(1980, 1, 1, 0, 0, 0)}


@pytest.mark.parametrize("at", [0, 3, 9, 15])
def test_a_state_folded_in_two_steps_gives_the_same_bytes(at: int) -> None:
    """A run publishes from the state in hand, and a replay folds from the first event."""
    events = recorded(history(cup(), "a", "b", "tie", "inconsistent", "refused"))
    tournament = tournament_of(STREAM)
    whole = fold(tournament, events)

    stepwise = fold(tournament, events[at:], start=fold(tournament, events[:at]))

    claim = publication(whole)
    assert files_of(results_of(stepwise, claim)) == files_of(results_of(whole, claim))


def test_publishing_changes_no_byte_of_what_was_published() -> None:
    """A claim is appended after the events that it is about, and read again with them."""
    events = history(cup(), "a", "b")
    before = known(*events)
    claim = publication(before)

    after = known(*events, RatingsPublished(publication=claim, artifacts=()))

    assert files_of(results_of(after, claim)) == files_of(results_of(before, claim))


@pytest.mark.parametrize("events", [cup(), history(cup(), "a"), history(cup(), "tie", "tie")])
def test_no_json_holds_a_number_that_json_does_not_know(events: tuple[Event, ...]) -> None:
    """NaN in a file stops every reader but Python, and hides that nothing was measured."""
    files = files_of(results(*events))

    values = [
        json.loads(text, parse_constant=refuse)
        for path, content in files.items()
        for text in texts_of(path, content)
    ]
    assert len(values) >= 3
    assert all(isinstance(value, dict) for value in values)


def test_a_record_is_one_line_whatever_it_says() -> None:
    """A response with line breaks must not tear its record in two."""
    opening = opened(prompts=[prompt(text=UNREADABLE_LINES)])
    texts = {("base", "p1"): UNREADABLE_LINES, ("tuned", "p1"): "plain"}
    said = responses(known(*opening), texts)

    content = files_of(results(*opening, *said))["matches/matches.jsonl"].decode()

    (line, end) = content.split("\n")
    assert (json.loads(line)["response_a"], end) == (UNREADABLE_LINES, "")
    assert json.loads(line)["prompt_text"] == UNREADABLE_LINES
