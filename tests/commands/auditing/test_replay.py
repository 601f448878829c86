"""Replay: fold from the first event again, and hold every run to what was claimed."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from commands.auditing.replay import (
    Difference,
    Replayed,
    claims_in,
    differences_from_claim,
    replay,
)
from commands.decisions.commands import PublishRatings
from commands.decisions.recorder import Recorder
from commands.errors import NotFound
from commands.importing.merge import merge_ledger
from commands.runs.run import PublishedRun, publish
from ledger.errors import FolderTaken
from ledger.events.ratings import ArtifactDigest, RatingsPublished
from ledger.exchange import read_export
from ledger.identity import StreamId, digest_of_bytes
from ledger.store import Ledger
from tests.support.builders.commands import record_answers, terms
from tests.support.builders.events import NOON, STREAM, key, opened, prompt
from tests.support.goldens.ledgers import PUBLISHED, published

NAME = "headline_20260427_120000"


@pytest.fixture
def run(recorder: Recorder, tmp_path: Path) -> PublishedRun:
    """Give a published run of two entrants and two prompts."""
    record_answers(recorder, opened(prompts=[prompt("p1"), prompt("p2")]))
    return publish(recorder, terms(), runs=tmp_path / "runs", now=NOON)


def contents(folder: Path) -> dict[Path, bytes]:
    """Return the files of a folder by their place in it."""
    return {
        file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file()
    }


def test_a_run_follows_from_the_first_event_again(ledger: Ledger, run: PublishedRun) -> None:
    """Byte for byte, without the folder: the ledger alone is enough."""
    assert run.is_new

    assert replay(ledger, STREAM) == Replayed(runs=(NAME,), differences=())


def test_a_redaction_excuses_no_file_without_texts(ledger: Ledger, run: PublishedRun) -> None:
    """Ratings follow from verdicts, which a redaction leaves."""
    (claim,) = claims_in(ledger, ledger.head.position)
    others = {each.path: key("other") for each in claim.ratings.artifacts}

    found = {each.path: each.is_fault for each in differences_from_claim(claim, others, [3])}
    assert run.is_new
    assert found["elo_results.json"]
    assert not found["matches/matches.jsonl"]


@pytest.mark.parametrize(
    ("offset", "n_kept"), [(0, None), (40, None), (None, 100)], ids=["first", "later", "cut"]
)
def test_a_changed_file_is_told_with_the_first_changed_byte(
    ledger: Ledger, run: PublishedRun, offset: int | None, n_kept: int | None
) -> None:
    """A rating mended by hand is found, and so is a file that was cut."""
    file = run.folder / "elo_results.json"
    content = bytearray(file.read_bytes()[:n_kept])
    if offset is not None:
        content[offset] ^= 1
    file.write_bytes(content)

    (found,) = replay(ledger, STREAM, against=run.folder).differences

    at = n_kept if offset is None else offset
    assert found == Difference(NAME, "elo_results.json", f"differs from byte {at} on")


def test_a_missing_file_is_told(ledger: Ledger, run: PublishedRun) -> None:
    """A run that lost a file is not the run that was published."""
    (run.folder / "matches" / "matches.jsonl").unlink()

    found = replay(ledger, STREAM, against=run.folder).differences

    assert found == (Difference(NAME, "matches/matches.jsonl", "is missing"),)


@pytest.mark.parametrize("content", [b"<p>Nicer.</p>", None], ids=["changed", "missing"])
def test_the_report_is_compared_with_nothing(
    ledger: Ledger, run: PublishedRun, content: bytes | None
) -> None:
    """It is a rendering, which the next version may word in another way."""
    report = run.folder / "report.html"
    report.unlink()
    if content is not None:
        report.write_bytes(content)

    assert replay(ledger, STREAM, against=run.folder).differences == ()


def test_a_folder_of_an_unknown_name_is_refused(
    ledger: Ledger, run: PublishedRun, tmp_path: Path
) -> None:
    """There is no claim to compare it with."""
    copy = run.folder.rename(tmp_path / "copy")

    with pytest.raises(NotFound, match="copy: no run with that name was published in :memory:"):
        replay(ledger, STREAM, against=copy)


def test_a_folder_that_is_not_there_is_no_run_that_was_changed(
    ledger: Ledger, run: PublishedRun, tmp_path: Path
) -> None:
    """From another folder a relative path leads nowhere: that is no audit that disagrees."""
    elsewhere = tmp_path / "elsewhere" / run.folder.name

    with pytest.raises(NotFound, match=re.escape(f"there is no folder {elsewhere}")):
        replay(ledger, STREAM, against=elsewhere)


def test_before_a_run_was_published_there_is_none(ledger: Ledger, run: PublishedRun) -> None:
    """As of an earlier position nothing was claimed yet."""
    before = ledger.head.position - 1

    assert replay(ledger, STREAM, until=before) == Replayed(runs=(), differences=())
    with pytest.raises(NotFound):
        replay(ledger, STREAM, until=before, against=run.folder)


def test_later_events_do_not_change_an_earlier_run(ledger: Ledger, run: PublishedRun) -> None:
    """Each run is folded as of its own position."""
    corrected = opened(prompts=[prompt("p1", gold="ibuprofen"), prompt("p2")])
    recorder = record_answers(Recorder(ledger, STREAM), corrected)
    second = publish(recorder, terms(), runs=run.folder.parent, now=NOON)

    replayed = replay(ledger, STREAM)

    assert replayed == Replayed(runs=(NAME, second.folder.name), differences=())


def test_another_tournament_of_the_ledger_is_not_replayed(
    ledger: Ledger, run: PublishedRun
) -> None:
    """Its runs are its own, even where both share responses."""
    assert run.is_new

    assert replay(ledger, StreamId("other")) == Replayed(runs=(), differences=())


def test_rebuilt_runs_are_written_where_asked(
    ledger: Ledger, run: PublishedRun, tmp_path: Path
) -> None:
    """Lost artifacts come back without generating or judging anything."""
    out = tmp_path / "rebuilt"

    replay(ledger, STREAM, out=out)

    assert contents(out / NAME) == contents(run.folder)
    assert Path("report.html") in contents(out / NAME)


def test_rebuilding_never_overwrites_a_run(ledger: Ledger, run: PublishedRun) -> None:
    """What lies there may be the only evidence that it differs."""
    with pytest.raises(FolderTaken, match="exists already; choose another folder"):
        replay(ledger, STREAM, out=run.folder.parent)


def test_what_was_published_long_ago_still_replays(ledger: Ledger) -> None:
    """An upgrade that turned old claims into faults would look like forgery.

    Ratings may differ: these runs are of version 1, which rounded them in another way.
    """
    with PUBLISHED.open("rb") as lines:
        merge_ledger(ledger, read_export(lines))

    replayed = replay(ledger, STREAM)

    assert replayed.runs == (NAME, "pilot_20260427_120000")
    assert [(each.path, each.is_fault) for each in replayed.differences] == [
        ("elo_results.json", False),
        ("elo_per_perm.npz", False),
        ("elo_ratings.json", False),
        ("elo_results.json", False),
        ("elo_per_perm.npz", False),
    ]


def test_the_ratings_of_long_ago_are_held_to_what_was_published(
    ledger: Ledger, run: PublishedRun
) -> None:
    """Their digits are not computed again, but whoever changed one is found."""
    folder, publication = run.folder.with_name("then"), run.results.publication
    file = run.folder.rename(folder) / "elo_results.json"
    file.write_bytes(b"{}")  # as if an earlier version had made it
    then = replace(publication, run="then", terms=replace(publication.terms, arithmetic=1))
    made = ArtifactDigest(path=file.name, digest=digest_of_bytes(b"{}"))
    claim = RatingsPublished(publication=then, artifacts=(made,))
    Recorder(ledger, STREAM).record(PublishRatings(claim))

    def found() -> list[tuple[bool, str]]:
        differences = replay(ledger, STREAM, against=folder).differences
        return [(each.is_fault, each.why) for each in differences if each.path == file.name]

    (is_fault, why), *others = found()
    assert (is_fault, others) == (False, [])
    assert "an earlier version published it" in why

    file.write_bytes(b"[]")

    assert found() == [(False, why), (True, "differs from what was published")]


def test_the_golden_ledger_is_made_by_the_script_beside_it() -> None:
    """The same facts, of whatever version; but its publications were rated by outcomes."""
    stored = [
        row.decode().event for row in read_export(PUBLISHED.read_bytes().splitlines(keepends=True))
    ]

    made = [row.decode().event for row in read_export(published())]

    is_publication = [isinstance(event, RatingsPublished) for event in stored]
    assert is_publication == [isinstance(event, RatingsPublished) for event in made]
    assert is_publication.count(True) == 2
    for event, other, skips in zip(stored, made, is_publication, strict=True):
        assert skips or event == other
