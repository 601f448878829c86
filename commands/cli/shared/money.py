"""What batches ask that the command at hand does not receive."""

from collections.abc import Collection, Iterable
from math import fsum

from commands.cli.shared.output import say
from commands.cli.shared.terminal import agree_to, require_somebody
from commands.cli.shared.workspace import Workshop
from commands.decisions.recorder import Recorder
from commands.errors import WorkInFlight, counted
from commands.evaluating.evaluate import used_on
from commands.spending.budget import Exposure
from commands.spending.consent import Offer, require_never_above_cap
from commands.spending.endpoints import (
    Request,
    served_costs,
    spent_usd,
)
from commands.spending.prices import PriceTable
from commands.spending.pricing import prices_of, pricing_for
from ledger.events.registration import JudgeSettings
from ledger.identity import Digest, PromptId
from projections.tournament.batches import Batch
from projections.tournament.matches import match_of, pairings
from projections.tournament.state import Tournament


def tell_of_batches(state: Tournament, judge: JudgeSettings) -> None:
    """Say what is not asked because a batch asks it that this command does not receive."""
    for batch in state.batches.values():
        if batch.is_open and batch.stream != state.stream:
            say(
                f"a batch of tournament {batch.stream!r} is in flight: what it asks is not asked"
                " again; receive it by its own settings"
            )
        elif batch.is_open and not judge.is_batched:
            say(
                f"a batch to {batch.planned.judge.label!r} is in flight: what it asks is not asked"
                " again; `tourney batch wait` receives it"
            )


def require_landed(state: Tournament, judge: JudgeSettings, prompts: Collection[PromptId]) -> None:
    """Do not call it done while a batch asks what has no verdict, whoever sent it.

    Raises:
        WorkInFlight: One does: the judge's provider was another, or it is another tournament's.
    """
    asked = _in_flight(state, judge, prompts)
    for batch in state.batches.values():
        if batch.is_open and not asked.isdisjoint(batch.planned.queries):
            raise WorkInFlight(
                f"{counted(len(asked), 'query', 'queries')} to {judge.judge_id!r} in batches with"
                f" the provider; {_how_to_receive(batch, state)}"
            )


def _in_flight(
    state: Tournament, judge: JudgeSettings, prompts: Collection[PromptId]
) -> frozenset[Digest]:
    if not state.in_flight:
        return frozenset()
    matches = (match_of(state, pairing, judge) for pairing in pairings(state, prompts))
    questions = (each for match in matches if match for each in (match.forward, match.swapped))
    asked = frozenset(question.query_key for question in questions) & state.in_flight
    return frozenset(key for key in asked if key not in state.verdicts)


def _how_to_receive(batch: Batch, state: Tournament) -> str:
    if batch.stream == state.stream:
        return "`tourney batch wait` receives them"
    return f"receive them by the settings of tournament {batch.stream!r}"


def spent_at_servers(recorder: Recorder, prices: PriceTable) -> float:
    """Return what the answers of entrants behind endpoints cost, responses and evaluations."""
    return spent_usd(used_on(recorder.ledger, recorder.state), prices)


def settle_served(
    recorder: Recorder,
    place: Workshop,
    requests: Iterable[Request],
    *,
    agreed: bool,
    max_usd: float | None,
) -> None:
    """Ask whether requests to endpoints may be paid for; one without a price is its owner's.

    Raises:
        Refused: It might go beyond the cap, the cap cannot be kept, or nobody agreed; nothing was
            sent.
    """
    prices = prices_of(place.settings, place.folder)
    priced = [cost for cost in served_costs(requests, prices) if cost.expected_usd]
    if not priced:
        return
    models = ", ".join(dict.fromkeys(cost.model for cost in priced))
    require_somebody(models, agreed=agreed)
    offer = Offer(
        n_queries=sum(cost.n_requests for cost in priced),
        model=models,
        expected_usd=fsum(cost.expected_usd or 0.0 for cost in priced),
        worst_usd=fsum(cost.worst_usd or 0.0 for cost in priced),
        spent_usd=recorder.state.spent_usd + spent_at_servers(recorder, prices),
        cap_usd=max_usd,
        uncertain_usd=0.0 if max_usd is None else _exposure(recorder, place).usd(),
    )
    require_never_above_cap(offer)
    agree_to(offer, agreed=agreed)


def _exposure(recorder: Recorder, place: Workshop) -> Exposure:
    return Exposure(
        recorder, lambda judge: pricing_for(place.settings, place.folder, judge, recorder.state)
    )
