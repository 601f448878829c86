"""Strategies of events: any valid event, and histories that a ledger takes."""

from collections.abc import Mapping
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from ledger.events.redaction import EventRedacted
from ledger.events.registry import Event
from ledger.events.values import type_name
from tests.support.strategies.evaluations import (
    evaluation_completed,
    evaluation_planned,
    item_registered,
    sample_observed,
    sample_unscorable,
)
from tests.support.strategies.imports import (
    battles_imported,
    event_redacted,
    ledger_merged,
    ratings_imported,
    ratings_published,
)
from tests.support.strategies.judging import (
    judge_batch_ended,
    judge_batch_not_created,
    judge_batch_planned,
    judge_batch_submitted,
    judge_query_failed,
    judge_query_reopened,
    judge_query_submitted,
    pair_reconciled,
    score_query_submitted,
    score_received,
    score_shared,
    verdict_received,
)
from tests.support.strategies.registration import (
    entrant_registered,
    judge_registered,
    prompt_registered,
    rubric_registered,
    tournament_opened,
)
from tests.support.strategies.responses import (
    parameter_refused,
    requests_settled,
    requests_submitted,
    response_failed,
    response_generated,
)


def events() -> SearchStrategy[Event]:
    """Return events of any type."""
    return st.one_of(*BY_TYPE.values())


def histories(max_size: int = 8) -> SearchStrategy[list[Event]]:
    """Return events that one stream takes: no two under the same key, and nothing redacted."""
    untold = [each for name, each in BY_TYPE.items() if name != type_name(EventRedacted)]
    return st.lists(
        st.one_of(untold),
        max_size=max_size,
        unique_by=lambda event: (type_name(event), tuple(event.natural_key)),
    )


BY_TYPE: Final[Mapping[str, SearchStrategy[Event]]] = {
    "TournamentOpened": tournament_opened(),
    "PromptRegistered": prompt_registered(),
    "RubricRegistered": rubric_registered(),
    "EntrantRegistered": entrant_registered(),
    "JudgeRegistered": judge_registered(),
    "ResponseGenerated": response_generated(),
    "ResponseFailed": response_failed(),
    "RequestsSubmitted": requests_submitted(),
    "RequestsSettled": requests_settled(),
    "ParameterRefused": parameter_refused(),
    "JudgeBatchPlanned": judge_batch_planned(),
    "JudgeBatchSubmitted": judge_batch_submitted(),
    "JudgeBatchNotCreated": judge_batch_not_created(),
    "JudgeBatchEnded": judge_batch_ended(),
    "JudgeQuerySubmitted": judge_query_submitted(),
    "VerdictReceived": verdict_received(),
    "ScoreQuerySubmitted": score_query_submitted(),
    "ScoreReceived": score_received(),
    "ScoreShared": score_shared(),
    "JudgeQueryFailed": judge_query_failed(),
    "JudgeQueryReopened": judge_query_reopened(),
    "PairReconciled": pair_reconciled(),
    "RatingsPublished": ratings_published(),
    "LedgerMerged": ledger_merged(),
    "BattlesImported": battles_imported(),
    "RatingsImported": ratings_imported(),
    "ItemRegistered": item_registered(),
    "EvaluationPlanned": evaluation_planned(),
    "SampleObserved": sample_observed(),
    "SampleUnscorable": sample_unscorable(),
    "EvaluationCompleted": evaluation_completed(),
    "EventRedacted": event_redacted(),
}
