"""Event ids: the same whenever the same fact is told again."""

import hashlib
from datetime import datetime, timedelta

from ledger.events.judging import PairReconciled
from ledger.identity import Dimension, EntrantId, JudgeId, PromptId, StreamId
from ledger.store import Ledger
from tests.builders import NOON, STREAM, key
from tests.ledger.facts import verdicts


def reconciled(dimension: str, prompt_id: str) -> PairReconciled:
    """Return an outcome of this prompt on this dimension."""
    return PairReconciled(
        dimension=Dimension(dimension),
        prompt_id=PromptId(prompt_id),
        entrant_a=EntrantId("base"),
        entrant_b=EntrantId("tuned"),
        judge=JudgeId("reference"),
        policy="agreement@1",
        outcome="a",
        forward=key("forward"),
        swapped=key("swapped"),
    )


def ids(now: datetime) -> list[str]:
    """Return the ids that three events get in a ledger begun at a time."""
    with Ledger.in_memory(now=lambda: now) as ledger:
        return [each.event_id for each in ledger.append(STREAM, verdicts(3))]


def test_an_event_id_never_changes_its_law() -> None:
    """A resumed run finds its events by ids that an older tourney gave."""
    since_epoch_ms = 1_777_291_200_000
    name = f'["main","VerdictReceived","{key("0")}"]'

    first, *_ = ids(NOON)

    assert first[:12] == f"{since_epoch_ms:012x}"
    assert first[12:] == hashlib.sha256(name.encode()).hexdigest()[:20]


def test_ids_depend_on_the_streams_beginning_alone() -> None:
    """A retry comes later than the first try, and must find the same id."""
    with Ledger.in_memory(now=iter((NOON, NOON + timedelta(days=1))).__next__) as ledger:
        ledger.append(STREAM, verdicts(1))
        (late,) = ledger.append(STREAM, verdicts(1, after=1))

    assert late.event_id == ids(NOON)[1]
    assert late.event_id not in ids(NOON + timedelta(days=1))


def test_ids_of_one_stream_lie_together() -> None:
    """Ids spread over the whole index would slow a long ledger's appends."""
    beginning = int(NOON.timestamp() * 1_000).to_bytes(6).hex()

    prefixes = {each[:12] for each in ids(NOON)}

    assert prefixes == {beginning}


def test_ids_keep_the_parts_of_a_key_apart(ledger: Ledger) -> None:
    """Labels may hold any character, a separator too, without meeting in one id."""
    one, other = reconciled("a\0b", "c"), reconciled("a", "b\0c")

    appended = ledger.append(StreamId("main"), [one, other])

    assert appended[0].event_id != appended[1].event_id
