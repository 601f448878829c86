"""Use case: what is owed, computed without recording anything."""

from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from commands.command import Command
from commands.tournament import decide
from ledger.chain import GENESIS
from ledger.events.registration import JudgeSettings
from ledger.identity import Dimension, EntrantId, PromptId
from ledger.recorded import Recorded
from projections.tournament.progress import AskingRules, open_queries, owed_responses
from projections.tournament.settlement import by_dimension, settle
from projections.tournament.state import Tournament, evolve


class OwedResponses(NamedTuple):
    """What one entrant owes."""

    entrant_id: EntrantId
    n_responses: int
    n_tokens_at_most: int


class OwedVerdicts(NamedTuple):
    """What a judge would be asked on one dimension."""

    dimension: Dimension
    n_pairs: int
    n_queries: int  # that can be put now
    n_waiting: int  # pairs that lack a response


def rehearse(state: Tournament, command: Command) -> Tournament:
    """Return what would be known after a command, without a ledger."""
    for event in decide(command, state):
        state = evolve(
            state,
            Recorded(
                position=state.version + 1,
                stream=state.stream,
                version=state.version + 1,
                recorded_us=0,
                link=GENESIS,
                event=event,
            ),
        )
    return state


def plan_responses(state: Tournament, prompts: Collection[PromptId]) -> tuple[OwedResponses, ...]:
    """Count the responses owed by each entrant of the roster."""
    owed = Counter(cell.entrant.entrant_id for cell in owed_responses(state, prompts))
    return tuple(
        OwedResponses(
            entrant.entrant_id,
            owed[entrant.entrant_id],
            owed[entrant.entrant_id] * entrant.max_new_tokens,
        )
        for entrant in state.roster
    )


def plan_verdicts(
    state: Tournament, prompts: Collection[PromptId], judge: JudgeSettings, rules: AskingRules
) -> tuple[OwedVerdicts, ...]:
    """Count the queries open on each dimension, and the pairs that wait for responses."""
    queries = open_queries(state, prompts, judge, rules)
    n_queries = Counter(query.match.pairing.rubric.dimension for query in queries)
    return tuple(
        OwedVerdicts(
            dimension,
            n_pairs=len(group),
            n_queries=n_queries[dimension],
            n_waiting=sum(each.match is None and each.status == "pending" for each in group),
        )
        for dimension, group in by_dimension(state, settle(state, prompts, judge)).items()
    )
