"""The events of tourney: everything that can happen, by name."""

from collections.abc import Mapping
from typing import Final, TypeAlias

from ledger.events.batches import (
    JudgeBatchEnded,
    JudgeBatchNotCreated,
    JudgeBatchPlanned,
    JudgeBatchSubmitted,
)
from ledger.events.battles import BattlesImported
from ledger.events.evaluations import (
    EvaluationCompleted,
    EvaluationPlanned,
    SampleObserved,
    SampleUnscorable,
)
from ledger.events.exchange import LedgerMerged
from ledger.events.imported_ratings import RatingsImported
from ledger.events.judging import (
    JudgeQueryFailed,
    JudgeQuerySubmitted,
    PairReconciled,
    VerdictReceived,
)
from ledger.events.ratings import RatingsPublished
from ledger.events.registration import (
    EntrantRegistered,
    JudgeRegistered,
    PromptRegistered,
    RubricRegistered,
    TournamentOpened,
)
from ledger.events.registry import Registry, Upcast
from ledger.events.responses import ResponseFailed, ResponseGenerated

Event: TypeAlias = (
    TournamentOpened
    | PromptRegistered
    | RubricRegistered
    | EntrantRegistered
    | JudgeRegistered
    | ResponseGenerated
    | ResponseFailed
    | JudgeBatchPlanned
    | JudgeBatchSubmitted
    | JudgeBatchNotCreated
    | JudgeBatchEnded
    | JudgeQuerySubmitted
    | VerdictReceived
    | JudgeQueryFailed
    | PairReconciled
    | RatingsPublished
    | LedgerMerged
    | BattlesImported
    | RatingsImported
    | EvaluationPlanned
    | SampleObserved
    | SampleUnscorable
    | EvaluationCompleted
)


UPCASTS: Final[Mapping[tuple[str, int], Upcast]] = {}  # every event is in its first version

EVENTS: Final[Registry[Event]] = Registry(Event.__args__, UPCASTS)
