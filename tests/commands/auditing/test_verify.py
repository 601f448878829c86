"""Verify: bytes, meaning, claims and checkpoints, every fault at once."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from msgspec.structs import replace

from commands.auditing.replay import replay
from commands.auditing.verify import Verification, noted_heads, verify
from commands.decisions.commands import PublishRatings
from commands.decisions.recorder import Recorder
from commands.errors import ConfigurationError
from commands.ports import GenerationTask, Reply, no_progress
from ledger.auditing.audit import Fault
from ledger.chain import Head
from ledger.errors import NotAHead
from ledger.events.imports import LedgerMerged
from ledger.events.ratings import ArtifactDigest, Publication, RatingsPublished
from ledger.identity import EntrantId, PromptId
from ledger.store import Ledger
from projections.verdicts.queries import JudgeQuery
from tests.support.builders.commands import P1, terms
from tests.support.builders.events import NOON, STREAM, entrant, key, opened, verdict
from tests.support.builders.games import (
    CHANGE,
    OPENING,
    forge_with_hashes,
    generated,
    judged,
    play,
    position_of,
    published,
)
from tests.support.command_line.settled import head_of
from tests.support.faults.hostile import tamper

CONTENT = "its content is not what was recorded"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give the file of a tournament that was played and published."""
    file = tmp_path / "tournament.db"
    play(file)
    return file


def found_in(path: Path, *noted: Head) -> Verification:
    """Verify a file."""
    with Ledger.read_only(path) as ledger:
        return verify(ledger, noted, no_progress)


def claimed(path: Path, *artifacts: ArtifactDigest, **fields: object) -> int:
    """Publish once more with another claim; return its position."""
    with Ledger.open(path) as ledger:
        recorder = Recorder(ledger, STREAM)
        (first,) = recorder.state.publications
        publication = replace(first.publication, run="claimed", **fields)
        claim = RatingsPublished(publication=publication, artifacts=artifacts or first.artifacts)
        recorder.record(PublishRatings(claim))
        return ledger.head.position


def test_a_published_tournament_has_no_fault(path: Path) -> None:
    """A check that cries wolf is soon no longer read."""
    assert found_in(path) == Verification(head_of(path), n_claims=1, n_foreign=0, faults=())


def test_an_empty_ledger_has_no_fault(ledger: Ledger) -> None:
    """It was opened and nothing came of it."""
    assert verify(ledger, [], no_progress) == Verification(ledger.head, 0, 0, ())


@given(data=st.data())
def test_whatever_a_tournament_comes_to_it_has_no_fault(data: DataObject) -> None:
    """Retries, failures, equal responses, a run cut short: what we record ourselves is sound."""
    replies = st.sampled_from(("VERDICT: A", "VERDICT: B", "VERDICT: TIE", "Both.", "", None))
    texts = st.sampled_from(("aspirin", "ibuprofen"))
    stops = st.sampled_from(("end_turn", "end_turn", "refusal", "max_tokens"))

    def answer(_: GenerationTask) -> str:
        return data.draw(texts)

    def reply(query: JudgeQuery) -> Reply | None:
        said = data.draw(replies)
        return None if said is None else Reply(query.query_key, said, data.draw(stops), "scripted")

    three = [entrant("base"), entrant("tuned"), entrant("best")]
    with Ledger.in_memory() as ledger:
        recorder = generated(Recorder(ledger, STREAM), opened(entrants=three), answer)
        judged(recorder, [P1], reply, limit=data.draw(st.none() | st.integers(1, 6)))
        judged(recorder, [P1], reply, retries=data.draw(st.integers(0, 2)))

        assert verify(ledger, [], no_progress).faults == ()


def test_what_an_event_claims_falsely_is_told_at_its_place(path: Path) -> None:
    """The chain is whole: it was recorded so, and still does not follow."""
    with Ledger.open(path) as ledger:
        (receipt,) = ledger.append(STREAM, [verdict(key("a query that nobody put"))])

    (fault,) = found_in(path).faults

    assert fault.position == receipt.recorded.position
    assert "which was not submitted before it" in fault.why


def test_published_ratings_that_do_not_follow_are_told(path: Path) -> None:
    """The leaderboard is what everybody reads; a claim of other bytes must not stand."""
    at = claimed(
        path,
        ArtifactDigest(path="elo_results.json", digest=key("a better rating")),
        ArtifactDigest(path="poster.pdf", digest=key("a poster")),
    )

    verified = found_in(path)

    assert verified.n_claims == 2
    assert verified.faults == (
        Fault(at, "claimed/elo_results.json differs from what was published"),
        Fault(at, "claimed/poster.pdf was published and is no longer made"),
    )


def test_terms_that_name_what_is_not_there_are_told(path: Path) -> None:
    """A claim by a judge who never was: nothing follows from it, and the check goes on."""
    other = terms(judge="nobody", entrants=(EntrantId("nobody"),), prompts=(PromptId("none"),))
    at = claimed(path, terms=other)

    faults = found_in(path).faults

    assert faults
    assert {fault.position for fault in faults} == {at}


@pytest.mark.parametrize(
    ("fields", "history"),
    [
        ({"head": key("elsewhere")}, f"{key('elsewhere')}@"),
        ({"as_of": 10**6}, f"@{10**6},"),
        ({"as_of": 10**30}, f"@{10**30},"),
    ],
    ids=["of another ledger", "not there yet", "no number stops the check"],
)
def test_a_publication_of_a_history_that_is_not_here_is_told(
    path: Path, fields: dict[str, object], history: str
) -> None:
    """Its ratings follow from events that nobody can see."""
    at = claimed(path, **fields)

    verified = found_in(path)

    (fault,) = verified.faults
    assert fault.position == at
    assert fault.why.startswith("it rates the history ")
    assert history in fault.why
    assert fault.why.endswith(", which this ledger does not have")
    assert (verified.n_claims, verified.n_foreign) == (1, 0)


def test_a_publication_that_came_with_a_merge_is_counted_only(path: Path) -> None:
    """It rates positions of another ledger, which can fold it; it is no fault of this one."""
    claimed(path, head=key("elsewhere"))
    with Ledger.open(path) as ledger:
        merged = LedgerMerged(head=key("elsewhere"), n_events=90, n_taken=1)
        ledger.append(STREAM, [merged])

    verified = found_in(path)

    assert (verified.n_claims, verified.n_foreign, verified.faults) == (1, 1, ())
    with Ledger.read_only(path) as ledger:
        replayed = replay(ledger, STREAM)
    assert (len(replayed.runs), replayed.differences) == (1, ())


def test_a_merge_is_no_excuse_for_what_was_published_here(path: Path) -> None:
    """Else one merge would make every later claim unassailable."""
    with Ledger.open(path) as ledger:
        merged = LedgerMerged(head=key("elsewhere"), n_events=90, n_taken=1)
        ledger.append(STREAM, [merged])
    at = claimed(path, head=key("elsewhere"))

    verified = found_in(path)

    assert verified.n_foreign == 0
    assert [fault.position for fault in verified.faults] == [at]


def test_a_history_with_all_hashes_made_anew_is_found_by_a_checkpoint(path: Path) -> None:
    """Nothing inside the file can tell: whoever owns it can compute every hash again."""
    tamper(path, "DELETE FROM event WHERE type = 'RatingsPublished'")
    noted = head_of(path)
    forge_with_hashes(
        path,
        "UPDATE event SET data = CAST(replace(CAST(data AS TEXT), 'tuned on', 'Tuned on') AS BLOB)",
    )

    assert found_in(path).faults == ()
    assert found_in(path, noted).faults == (
        Fault(noted.position, f"the kept head {noted} is of another history"),
    )


def test_a_rewrite_is_found_by_what_was_published_before_it(path: Path) -> None:
    """A publication names its history, so even without a checkpoint it does not fit."""
    at = position_of(path, "RatingsPublished")
    forge_with_hashes(path, CHANGE("recorded_us = recorded_us + 1", 1))

    (fault,) = found_in(path).faults

    assert fault.position == at
    assert "which this ledger does not have" in fault.why


def test_a_checkpoint_holds_while_the_ledger_grows(path: Path) -> None:
    """It is noted once and compared with for ever; several may be given."""
    noted = [head_of(path)]
    for n in (2, 3):
        with Ledger.open(path) as ledger:
            ledger.append(STREAM, opened(opening=n)[:1])
        noted.append(head_of(path))

    assert found_in(path, *noted, Head(0, ZERO)).faults == ()
    others = [Head(position, key("other")) for position in (2, 1)]
    assert [fault.position for fault in found_in(path, *others).faults] == [1, 2]  # each is told


ZERO = Head.parse(f"{'0' * 64}@0").chain


def test_an_event_that_cannot_be_read_does_not_stop_the_check(path: Path) -> None:
    """What stands behind it is looked at all the same."""
    at = position_of(path, "ResponseGenerated")
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, [verdict(key("a query that nobody put"))])
        last = ledger.head.position
    tamper(path, CHANGE("type = 'PairSettled'", at))

    faults = found_in(path).faults

    assert Fault(at, CONTENT) in faults
    assert Fault(at, "unknown event type 'PairSettled'; a newer tourney may know it") in faults
    assert faults[-1].position == last
    assert "which was not submitted before it" in faults[-1].why


@pytest.mark.parametrize("type_", ["RatingsPublished", "LedgerMerged"])
def test_a_claim_that_cannot_be_read_does_not_stop_the_check(path: Path, type_: str) -> None:
    """Publications and merges are looked up first; a damaged one is a fault like any other."""
    at = position_of(path, "RatingsPublished")
    tamper(path, CHANGE(f"type = '{type_}', schema_version = 1, data = x'7b7d'", at))

    faults = found_in(path).faults

    assert {fault.position for fault in faults} == {at}
    assert [fault for fault in faults if f"its data does not match {type_}" in fault.why]


def test_several_faults_are_all_listed_by_position(path: Path) -> None:
    """Who repairs a ledger wants to know all that is wrong with it."""
    noted = Head(3, key("other"))
    submitted, outcome = (
        position_of(path, "JudgeQuerySubmitted"),
        position_of(path, "PairReconciled"),
    )
    at = claimed(path, ArtifactDigest(path="battles.jsonl", digest=key("other battles")))
    flipped = "CAST(replace(CAST(data AS TEXT), 'outcome\":\"b', 'outcome\":\"a') AS BLOB)"
    tamper(
        path,
        CHANGE("version = 99", submitted),
        CHANGE(f"data = {flipped}", outcome),
        "DROP INDEX stream_began",
    )

    faults = found_in(path, noted).faults

    places = [fault.position for fault in faults]
    assert places == sorted(places)
    assert {0, 3, submitted, outcome, at} <= set(places)
    assert "swap-consistent gives 'b'" in " ".join(fault.why for fault in faults)


def test_progress_is_told_to_the_last_event(path: Path) -> None:
    """A check of a long ledger takes seconds, and must not look like one that hangs."""
    told: list[tuple[str, int, int]] = []

    with Ledger.read_only(path) as ledger:
        verify(ledger, [], lambda *heard: told.append(heard))

    last = head_of(path).position
    assert told == [("events", last, last)]


def test_two_runs_of_one_history_are_both_checked(ledger: Ledger, tmp_path: Path) -> None:
    """They share a position; the fold stops there once and rates for each."""
    recorder = judged(generated(Recorder(ledger, STREAM), OPENING))
    first = published(recorder, tmp_path)
    publication: Publication = first.results.publication
    other = replace(publication, run="forged", started_at=NOON)
    claim = RatingsPublished(
        publication=other,
        artifacts=(ArtifactDigest(path="battles.jsonl", digest=key("other battles")),),
    )
    recorder.record(PublishRatings(claim))

    verified = verify(ledger, [], no_progress)

    assert verified.n_claims == 2
    assert [fault.why for fault in verified.faults] == [
        "forged/battles.jsonl differs from what was published"
    ]


FIRST, SECOND = Head(12, key("first")), Head(2183, key("second"))


def noted(folder: Path, content: bytes) -> tuple[Head, ...]:
    """Write a file and return the heads in it."""
    file = folder / "note.txt"
    file.write_bytes(content)
    return noted_heads(str(file))


def test_a_head_that_is_spelt_out_is_read(tmp_path: Path) -> None:
    """Copied from a message onto a command line, with the blank that came along."""
    assert noted_heads(str(FIRST)) == (FIRST,)
    assert noted_heads(f" {FIRST}\n") == (FIRST,)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "heads"),
    [
        (f"Monday: {FIRST}\nTuesday: {FIRST}, then\n({SECOND}).\n".encode(), (FIRST, SECOND)),
        (json.dumps({"as_of": 12, "checkpoint": str(FIRST)}).encode(), (FIRST,)),
        (b"\xff\xfe caf\xe9 " + str(FIRST).encode() + b" \x00", (FIRST,)),
    ],
    ids=["a log", "a run's manifest", "a mail that is no text"],
)
def test_every_head_in_a_file_is_read_once(
    tmp_path: Path, content: bytes, heads: tuple[Head, ...]
) -> None:
    """A log of checkpoints repeats what did not change; a manifest that was handed on has one."""
    assert noted(tmp_path, content) == heads


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing of the kind",
        FIRST.chain,
        f"{FIRST.chain}@",
        f"{FIRST.chain[1:]}@12",
        f"a{FIRST}",
        f"{FIRST.chain.upper()}@12",
        f"{FIRST.chain}@1234567890123456789",
    ],
)
def test_a_file_without_a_head_is_refused(tmp_path: Path, text: str) -> None:
    """Compared with nothing, any ledger would pass."""
    with pytest.raises(ConfigurationError, match=r"note.txt: it holds no head hash"):
        noted(tmp_path, text.encode())


@pytest.mark.parametrize("name", ["", "note.txt", "deadbeef@3", "."])
def test_neither_a_file_nor_a_head_is_refused(name: str) -> None:
    """A mistyped file name is told as what it is."""
    with pytest.raises(
        NotAHead, match="is not a head hash: expected 64 hexadecimal digits, @ and a position"
    ):
        noted_heads(name)


def test_a_word_too_long_for_a_file_name_is_refused() -> None:
    """Four checkpoints pasted as one word are no file, and no reason for a traceback."""
    with pytest.raises(NotAHead):
        noted_heads(str(FIRST) * 4)
