"""Taking in another ledger's events: all of what is new, and ours where both contradict."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from commands.auditing.verify import Verification, verify
from commands.decisions.recorder import Recorder
from commands.importing.merge import MergeCounts, merge_ledger
from commands.ports import no_progress
from ledger.auditing.audit import audit
from ledger.errors import BrokenExport, UnreadableEvent
from ledger.exchange import export_lines, read_export
from ledger.identity import StreamId
from ledger.store import Ledger
from projections.tournament.settlement import settle
from projections.verdicts.queries import JudgeQuery
from tests.support.builders.commands import JUDGE, P1, P2, prefer_tuned, types_of
from tests.support.builders.events import STREAM, opened, prompt
from tests.support.builders.games import generated, judged, published

OTHER = StreamId("other")


class Pair(NamedTuple):
    """Two ledgers that began as one, each with its recorder."""

    ours: Ledger
    theirs: Ledger

    def recorder(self) -> Recorder:
        """Open our tournament for decisions, as it stands now."""
        return Recorder(self.ours, STREAM)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """Give a ledger with all responses of two entrants to two prompts, and a copy of it."""
    paths = (tmp_path / "ours.db", tmp_path / "theirs.db")
    with Ledger.open(paths[0]) as ledger:
        generated(Recorder(ledger, STREAM))
    shutil.copy(*paths)
    with ExitStack() as opened_both:
        yield Pair(*(opened_both.enter_context(Ledger.open(path)) for path in paths))


def prefer_base(query: JudgeQuery) -> str:
    """Find the response of `base` better."""
    return "VERDICT: B" if prefer_tuned(query).endswith("A") else "VERDICT: A"


def take(pair: Pair) -> MergeCounts:
    """Take theirs into ours."""
    return merge_ledger(pair.ours, pair.theirs.rows())


def statuses(ledger: Ledger) -> list[str]:
    """Return what became of the two pairings."""
    settlements = settle(Recorder(ledger, STREAM).state, [P1, P2], JUDGE)
    return [settlement.status for settlement in settlements]


def test_an_outcome_that_follows_from_theirs_is_settled_again(pair: Pair) -> None:
    """They had both verdicts and we had one, another: the pair is reconciled from what we hold."""
    judged(pair.recorder(), [P1], prefer_tuned, limit=1)
    judged(Recorder(pair.theirs, STREAM), [P1], prefer_base)

    taken = take(pair)
    before = statuses(pair.ours)
    asked: list[JudgeQuery] = []
    judged(pair.recorder(), [P1], lambda query: asked.append(query))  # noqa: PLW0108  # its None is no reply

    assert (len(taken.conflicts), taken.n_left) == (1, 1)
    assert before == ["pending", "pending"]
    assert asked == [], "both queries were answered already"
    assert statuses(pair.ours) == ["inconsistent", "pending"]


def test_a_merged_ledger_has_no_fault(pair: Pair, tmp_path: Path) -> None:
    """Whatever was left out or kept: what remains follows from what it cites."""
    judged(pair.recorder(), [P1], prefer_tuned)
    published(pair.recorder(), tmp_path / "ours")
    theirs = judged(Recorder(pair.theirs, STREAM), [P1, P2], prefer_base)
    published(theirs, tmp_path / "theirs")
    pair.theirs.append(OTHER, opened(prompts=[prompt("p3")]))

    take(pair)
    judged(pair.recorder())

    verified = verify(pair.ours, [], no_progress)
    head = pair.ours.head
    assert verified == Verification(head, n_claims=1, n_foreign=0, faults=())


def test_a_verdict_of_theirs_answers_what_ours_failed_at(pair: Pair) -> None:
    """It was paid for: asking again would pay a third time."""
    judged(pair.recorder(), [P1], lambda _: "Both are fine.")
    judged(Recorder(pair.theirs, STREAM), [P1], prefer_tuned)

    taken = take(pair)

    assert taken.conflicts == ()
    assert statuses(pair.ours) == ["b", "pending"]


def test_an_outcome_follows_from_verdicts_whatever_failed_before_them(pair: Pair) -> None:
    """Both had unreadable replies, in other words; then their judge was heard."""
    judged(pair.recorder(), [P1], lambda _: "Both are fine.")
    tried: set[str] = set()

    def at_second(query: JudgeQuery) -> str:
        if query.query_key in tried:
            return prefer_tuned(query)
        tried.add(query.query_key)
        return "Neither."

    judged(Recorder(pair.theirs, STREAM), [P1], at_second, retries=1)

    taken = take(pair)

    assert (len(taken.conflicts), taken.n_left) == (2, 0)
    assert statuses(pair.ours) == ["b", "pending"]
    assert verify(pair.ours, [], no_progress).faults == ()


def test_nothing_is_taken_of_a_file_that_was_cut(pair: Pair) -> None:
    """That it is broken shows at its end only, when most of it was read."""
    judged(Recorder(pair.theirs, STREAM), [P2])
    *cut, _last = export_lines(pair.theirs.rows())
    head = pair.ours.head

    with pytest.raises(BrokenExport):
        merge_ledger(pair.ours, read_export(cut))

    assert pair.ours.head == head
    assert types_of(pair.ours).count("LedgerMerged") == 0


def test_ledgers_that_both_took_in_a_third_do_not_contradict_each_other(
    pair: Pair, tmp_path: Path
) -> None:
    """A hub collects from hosts that collect from each other; how much was new differs."""
    with Ledger.open(tmp_path / "third.db") as third:
        merge_ledger(third, pair.ours.rows())
        judged(Recorder(third, STREAM))
        judged(Recorder(pair.theirs, STREAM), [P2], prefer_tuned)
        merge_ledger(pair.ours, third.rows())
        merge_ledger(pair.theirs, third.rows())

        taken = take(pair)

    assert taken.conflicts == ()


def redacted_verdict(ledger: Ledger) -> int:
    """Redact the first verdict of a ledger, and return its position."""
    position = next(row.position for row in ledger.rows() if row.type == "VerdictReceived")
    ledger.redact(position, "a key")
    return position


def test_a_redacted_ledger_is_taken_in_as_it_is(pair: Pair) -> None:
    """An empty ledger becomes an exact copy: what was removed stays removed."""
    judged(Recorder(pair.theirs, STREAM))
    redacted_verdict(pair.theirs)

    with Ledger.in_memory() as empty:
        merge_ledger(empty, pair.theirs.rows())

        assert list(empty.rows()) == list(pair.theirs.rows())
        assert audit(empty) == ()


def test_what_is_redacted_there_alone_stays_here(pair: Pair) -> None:
    """Whether a text is removed from a ledger is for its owner to say."""
    judged(pair.recorder())
    merge_ledger(pair.theirs, pair.ours.rows())
    redacted_verdict(pair.theirs)
    before = list(pair.ours.rows())

    counts = merge_ledger(pair.ours, pair.theirs.rows())

    after = list(pair.ours.rows())
    assert after[: len(before)] == before
    assert [row.type for row in after[len(before) :]] == ["LedgerMerged"] * 2
    assert counts.n_known == len(before) + 1
    assert audit(pair.ours) == ()


def test_what_is_redacted_here_does_not_come_back(pair: Pair) -> None:
    """Another ledger still has the text; ours knows the fact, and keeps the tombstone."""
    judged(pair.recorder())
    merge_ledger(pair.theirs, pair.ours.rows())
    at = redacted_verdict(pair.ours)

    counts = merge_ledger(pair.ours, pair.theirs.rows())

    assert counts.conflicts == ()
    assert [each.position for each in pair.ours.read() if each.redacted] == [at]
    assert audit(pair.ours) == ()


def test_a_tombstone_that_nothing_tells_of_is_refused(pair: Pair) -> None:
    """Anybody could write one into an export, with a verdict of his own."""
    judged(Recorder(pair.theirs, STREAM))
    redacted_verdict(pair.theirs)
    untold = [row for row in pair.theirs.rows() if row.type != "EventRedacted"]
    before = list(pair.ours.rows())

    with pytest.raises(UnreadableEvent, match="no event says so"):
        merge_ledger(pair.ours, untold)

    assert list(pair.ours.rows()) == before
