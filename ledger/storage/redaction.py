"""Redaction: remove the texts of an event from a ledger's file for good.

An event keeps its ids, digests, numbers, verdicts and scores, from which the rest of its tournament
follows: nothing is asked or paid for again. Its leaf hashes the digest of its payload, and the
tombstone holds that digest, so no hash changes. What remains is written as events are today: of an
event that was recorded in an older version, the tombstone says so.
"""

import sqlite3
from pathlib import Path
from typing import Final, assert_never

from msgspec.structs import replace

from ledger.chain import is_tombstone, payload_digest, tombstone
from ledger.errors import CannotRedact, NotErased
from ledger.events.evaluations import (
    AnswerObserved,
    ChoicesItem,
    EvaluationCompleted,
    EvaluationItem,
    EvaluationPlanned,
    ItemRegistered,
    Observation,
    PredictionObserved,
    PromptItem,
    SampleObserved,
    SampleUnscorable,
    TextItem,
)
from ledger.events.imports import BattlesImported, RatingsImported
from ledger.events.judging import (
    JudgeBatchNotCreated,
    JudgeQueryFailed,
    ReplyRead,
    ScoreReceived,
    VerdictReceived,
)
from ledger.events.registration import Registered, TournamentOpened
from ledger.events.registry import EVENTS, Event
from ledger.events.requests import ParameterRefused, RequestsSettled
from ledger.events.responses import ResponseFailed, ResponseGenerated
from ledger.events.values import REDACTED, EventRedacted
from ledger.identity import Digest, digest_of_bytes
from ledger.recorded import Recorded, StoredEvent
from ledger.storage import schema

REDACTED_SETTINGS: Final = '{"redacted":true}'
"""What stands in the place of a configuration."""

_NEVER_UPDATED: Final = "event_is_never_updated"
_LATER: Final = "SELECT 1 FROM event WHERE stream = ? AND type = ? AND position > ? LIMIT 1"
_NO_TEXT: Final = "it holds no text, only names, digests and numbers"


def require_redactable(connection: sqlite3.Connection, position: int) -> StoredEvent:
    """Return the event at a position, if it can be redacted.

    Raises:
        CannotRedact: There is no such event, its texts are removed already, or they must stay.
    """
    found = connection.execute("SELECT * FROM event WHERE position = ?", (position,)).fetchone()
    if found is None:
        raise CannotRedact(position, "the ledger has no such position; see `tourney log`")
    row = StoredEvent.of(found)
    if is_tombstone(row.data):
        raise CannotRedact(position, "its texts are removed already; see `tourney verify`")
    if row.type == TournamentOpened.__name__ and _is_newest(connection, row):
        raise CannotRedact(
            position,
            "it is the newest opening of its tournament: correct the settings, open it anew with"
            " `tourney apply generate --limit 0`, then redact this one",
        )
    _without_texts(row.decode())
    return row


def _is_newest(connection: sqlite3.Connection, row: StoredEvent) -> bool:
    """Say whether a stream has no later event of a row's type."""
    later = connection.execute(_LATER, (row.stream, row.type, row.position))
    return later.fetchone() is None


def redact_row(connection: sqlite3.Connection, position: int, why: str) -> EventRedacted:
    """Put a tombstone in the place of an event's payload, within a write transaction.

    The trigger that forbids it is dropped, and made again before the transaction ends: so no other
    connection ever sees the table without it.

    Returns:
        The event to append in the same transaction.

    Raises:
        CannotRedact: There is no such event, its texts are removed already, or they must stay.
    """
    row = require_redactable(connection, position)
    remaining = _without_texts(row.decode())
    newer = remaining.schema_version if remaining.schema_version != row.schema_version else None
    stands = tombstone(row.data, EVENTS.encode(remaining), newer)
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute(f"DROP TRIGGER {_NEVER_UPDATED}")
    connection.execute("UPDATE event SET data = ? WHERE position = ?", (stands, position))
    connection.execute(schema.DEFINITIONS[_NEVER_UPDATED])
    return EventRedacted(
        event_id=row.event_id.hex(),
        digest=Digest(payload_digest(row.data).hex()),
        tombstone=digest_of_bytes(stands),
        why=why,
    )


def erase(connection: sqlite3.Connection, path: Path) -> None:
    """Write the file anew, so that neither it nor its log holds what was removed.

    Overwriting the row is not enough: where SQLite once split a page, it left copies of rows in
    the room that became free.

    Raises:
        NotErased: Another process reads an older state of the file, or there is no room.
    """
    try:
        connection.execute("VACUUM")
        [(is_busy, *_)] = connection.execute(schema.CHECKPOINT)
    except sqlite3.OperationalError as error:
        raise NotErased(path, str(error)) from error
    if is_busy:
        raise NotErased(path, "another process reads an older state of it")


def _without_texts(recorded: Recorded) -> Event:
    """Return an event with REDACTED in the place of its texts."""
    match event := recorded.event:
        case ResponseGenerated():
            return replace(event, text=_masked(event.text), reasoning=event.reasoning and REDACTED)
        case VerdictReceived() | ScoreReceived() | JudgeQueryFailed():
            return _unsaid(event)
        case ResponseFailed() | SampleUnscorable() | ParameterRefused():
            return replace(event, detail=_masked(event.detail))
        case JudgeBatchNotCreated():
            return replace(event, why=_masked(event.why))
        case RequestsSettled(charges=charges):
            settled = [replace(charge, detail=_masked(charge.detail)) for charge in charges]
            return replace(event, charges=tuple(settled))
        case SampleObserved(observation=AnswerObserved() | PredictionObserved() as observed):
            return replace(event, observation=_unread(observed))
        case EvaluationCompleted(scores=scores) if scores:
            cleaned = [replace(score, cleaned=_masked(score.cleaned)) for score in scores]
            return replace(event, scores=tuple(cleaned))
        case ItemRegistered() | TournamentOpened():
            return _unregistered(event)
        case _:
            raise CannotRedact(recorded.position, _why_not(event))


def _unregistered(event: ItemRegistered | TournamentOpened) -> Event:
    if isinstance(event, ItemRegistered):
        return replace(event, asked=_unasked(event.asked))
    return replace(event, configuration=REDACTED_SETTINGS)


def _unsaid(event: ReplyRead | JudgeQueryFailed) -> Event:
    bare = replace(event, reply=_masked(event.reply))
    if isinstance(bare, JudgeQueryFailed):
        return replace(bare, detail=_masked(bare.detail))
    return bare


def _masked(text: str) -> str:
    return text and REDACTED


def _unread(observed: AnswerObserved | PredictionObserved) -> Observation:
    if isinstance(observed, AnswerObserved):
        return replace(observed, text=REDACTED, cleaned=REDACTED, expected=REDACTED)
    texts = dict.fromkeys(("text", "prediction", "cleaned"), REDACTED)
    return replace(observed, **texts, predicted=(), target=())


def _unasked(asked: EvaluationItem) -> EvaluationItem:
    match asked:
        case PromptItem():
            return replace(asked, prompt=REDACTED, expected=REDACTED)
        case ChoicesItem(choices=choices):
            return replace(asked, context=REDACTED, choices=(REDACTED,) * len(choices))
        case TextItem():
            return replace(asked, text=REDACTED)
        case _:
            assert_never(asked)


def _why_not(event: Event) -> str:
    match event:
        case Registered():
            return "responses and queries are found by the digest of what it registers"
        case EvaluationPlanned():
            return "the samples of its run are found by the digest of its settings"
        case BattlesImported() | RatingsImported():
            return "it is rated as a whole; import a corrected file into a new ledger"
        case _:
            return _NO_TEXT
