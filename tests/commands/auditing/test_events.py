"""Finding one event by whatever a user has at hand, and watching events arrive."""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from commands.auditing.events import find_events, follow
from commands.decisions.recorder import Recorder
from commands.errors import NotFound
from ledger.errors import CannotRead
from ledger.events.evaluations import SampleObserved, SampleUnscorable
from ledger.events.registration import PromptRegistered
from ledger.events.registry import Event
from ledger.events.responses import ResponseGenerated
from ledger.identity import PromptId
from ledger.recorded import StoredEvent
from ledger.store import Ledger
from projections.tournament.remaining import open_queries
from tests.support.builders.commands import JUDGE, open_tournament, record_answers, submitted
from tests.support.builders.evaluations import answer, observed, plan, unscorable
from tests.support.builders.events import STREAM, key, opened, prompt, verdict
from tests.support.faults.hostile import unprivileged


@pytest.fixture
def filled(ledger: Ledger, recorder: Recorder) -> Ledger:
    """Give a ledger of two entrants' answers to a prompt."""
    record_answers(recorder)
    return ledger


def last(ledger: Ledger) -> StoredEvent:
    """Return the newest event: a response."""
    return list(ledger.rows())[-1]


def key_of(row: StoredEvent) -> str:
    """Return what names the event."""
    return row.decode().event.natural_key[0]


def test_an_event_is_found_at_its_position(filled: Ledger) -> None:
    """The log shows positions first."""
    assert [find_events(filled, str(n))[0].position for n in (1, 8)] == [1, 8]


def test_a_thing_is_found_by_its_label(filled: Ledger) -> None:
    """Nobody remembers digests of prompts."""
    found = find_events(filled, "p1")[0].decode().event

    assert isinstance(found, PromptRegistered)
    assert found.prompt == prompt("p1")


@pytest.mark.parametrize(
    ("name", "kind"), [("recall[1]", SampleObserved), ("recall[3]", SampleUnscorable)]
)
def test_a_sample_is_found_by_its_label(ledger: Ledger, name: str, kind: type[Event]) -> None:
    """What an evaluation's errors and tables call it."""
    planned = plan()
    seen = observed(planned, [answer(), answer()])
    ledger.append(STREAM, [planned, *seen, unscorable(planned, 3)])

    [found] = find_events(ledger, name)

    assert isinstance(found.decode().event, kind)


def test_an_evaluation_means_its_newest_plan(ledger: Ledger) -> None:
    """What was asked for last."""
    ledger.append(STREAM, [plan(), plan("tuned", number=2)])

    [found] = find_events(ledger, "recall")

    assert found.decode().event == plan("tuned", number=2)


def test_a_label_means_its_newest_registration(filled: Ledger) -> None:
    """A corrected prompt is what the tournament uses now."""
    corrected = prompt("p1", gold="ibuprofen")
    Recorder(filled, STREAM).record(open_tournament(opened(prompts=[corrected])))

    found = find_events(filled, "p1")[0].decode().event

    assert isinstance(found, PromptRegistered)
    assert found.prompt.gold_answer == "ibuprofen"


def test_a_response_is_found_by_the_beginning_of_its_key(filled: Ledger) -> None:
    """Tables show twelve characters of a key, and they should do."""
    response = last(filled)

    assert list(find_events(filled, key_of(response)[:12])) == [response]
    assert list(find_events(filled, response.event_id.hex()[:20])) == [response]


def test_a_key_that_begins_with_decimals_only_is_found_too(filled: Ledger) -> None:
    """One key in 280 does in its first twelve characters; it is no position."""
    responses = [each for each in filled.read() if isinstance(each.event, ResponseGenerated)]
    copy = replace(responses[0].event, response_key="1234567890" * 6 + "abcd")
    filled.append(STREAM, [copy])

    assert list(find_events(filled, "123456789012")) == [last(filled)]


def test_a_beginning_of_several_names_is_told_with_their_positions(filled: Ledger) -> None:
    """The user chooses; guessing would show the wrong event without a word."""
    with pytest.raises(NotFound) as caught:
        find_events(filled, "")

    message = str(caught.value)
    assert message.startswith("'' means ")
    assert "1 TournamentOpened, 2 PromptRegistered, " in message
    assert message.endswith("give more of the id, or a position")


@pytest.mark.parametrize("name", ["p", "nobody", "99", "9" * 30, "9" * 5_000, "%", "zz", "\udcff"])
def test_a_name_of_nothing_is_told_as_such(filled: Ledger, name: str) -> None:
    """Neither half a label, nor a wildcard, a number beyond SQLite's or bytes mean an event."""
    with pytest.raises(
        NotFound, match="is not a position, label or key in :memory:; see `tourney lo"
    ):
        find_events(filled, name)


def test_a_query_key_means_its_submission_and_its_verdict(
    filled: Ledger, recorder: Recorder
) -> None:
    """What was asked and what was answered are read together."""
    query, *_ = open_queries(recorder.state, [PromptId("p1")], JUDGE, retries=0)
    query_key = query.asked.query_key
    asked_and_answered: list[Event] = [submitted(query), verdict(query_key)]
    n_before = filled.head.position
    filled.append(STREAM, asked_and_answered)

    found = find_events(filled, query_key[:10])

    assert [row.decode().event for row in found] == asked_and_answered
    assert [row.position for row in found] == [n_before + 1, n_before + 2]


class Enough(Exception):
    """Nobody looks any longer."""


def appending(ledger: Ledger, *batches: int) -> Callable[[], None]:
    """Return a wait in which others append so many events each time; then it ends."""
    remaining = iter(batches)
    names = iter(range(10**9))

    def wait() -> None:
        n_events = next(remaining, None)
        if n_events is None:
            raise Enough
        ledger.append(STREAM, [verdict(key(str(next(names)))) for _ in range(n_events)])

    return wait


@pytest.mark.parametrize("batches", [(), (1,), (2, 0, 3), (1_500, 1)])
@pytest.mark.parametrize("after", [0, 1])
def test_every_event_is_seen_once_and_in_order(
    tmp_path: Path, batches: tuple[int, ...], after: int
) -> None:
    """However many arrive between two looks, none is shown twice or left out."""
    seen: list[int] = []

    with Ledger.open(tmp_path / "run.ledger") as ledger:
        ledger.append(STREAM, [verdict(key("first")), verdict(key("second"))])
        news = follow(ledger.path, after, appending(ledger, *batches))
        with pytest.raises(Enough):
            seen.extend(row.position for row in news)

    assert seen == list(range(after + 1, 3 + sum(batches)))


def test_who_may_not_write_beside_it_sees_what_is_appended(public_folder: Path) -> None:
    """A ledger that nobody writes is read as it lies; the run begins while one looks on."""
    shelf = public_folder / "shelf"
    path = shelf / "run.ledger"
    names = iter(["second", "third"])
    seen: list[int] = []

    def wait() -> None:
        name = next(names, None)
        if name is None:
            raise Enough
        append(name)

    def append(name: str) -> None:
        shelf.chmod(0o755)
        with Ledger.open(path) as ledger:
            ledger.append(STREAM, [verdict(key(name))])
        shelf.chmod(0o555)

    with unprivileged():
        shelf.mkdir()
        append("first")

        with pytest.raises(Enough):
            seen.extend(row.position for row in follow(path, 0, wait))

    assert seen == [1, 2, 3]


def test_a_ledger_that_was_replaced_is_followed_no_further(tmp_path: Path) -> None:
    """Its events would be shown as if they continued those of the other."""
    path, other = tmp_path / "run.ledger", tmp_path / "other.ledger"
    for each, name in ((path, "first"), (other, "another")):
        with Ledger.open(each) as ledger:
            ledger.append(STREAM, [verdict(key(name)), verdict(key("second"))])

    def replace() -> None:
        other.replace(path)

    news = follow(path, 1, replace)

    assert next(news).position == 2
    with pytest.raises(CannotRead, match="it was replaced: position 2 is no longer the same"):
        next(news)
