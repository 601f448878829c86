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
from ledger.events.registry import Fields, Registry, Upcast
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


def _as_it_was(fields: Fields) -> Fields:
    """Leave what a version added at its default, which says what held before."""
    return fields


UPCASTS: Final[Mapping[tuple[str, int], Upcast]] = {
    ("EntrantRegistered", 1): _as_it_was,  # 2: hydra
    ("EntrantRegistered", 2): _as_it_was,  # 3: revision; dtype may be null
    ("ResponseGenerated", 1): _as_it_was,  # 2: p_correct, diagnostics, imported_from
    ("ResponseFailed", 1): _as_it_was,  # 2: usage
    ("JudgeQuerySubmitted", 1): _as_it_was,  # 2: batch_key
    ("VerdictReceived", 1): _as_it_was,  # 2: usage, price
    ("JudgeQueryFailed", 1): _as_it_was,  # 2: detail, usage, price
    ("PairReconciled", 1): _as_it_was,  # 2: basis
    ("RatingsPublished", 1): _as_it_was,  # 2: edition, bootstraps, bradley_terry
    ("RatingsPublished", 2): _as_it_was,  # 3: edition 3
    ("RatingsPublished", 3): _as_it_was,  # 4: edition 4
}

EVENTS: Final[Registry[Event]] = Registry(Event.__args__, UPCASTS)
