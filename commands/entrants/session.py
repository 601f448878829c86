"""Use case: generate all missing responses, one by one and in batches, with consent and a cap."""

from collections.abc import Sequence
from functools import cache, partial

from commands.batching.receiving import BatchOptions
from commands.batching.sending import telling_what_goes_on
from commands.decisions.recorder import Recorder
from commands.entrants.batches import ResponseBatches
from commands.entrants.generate import (
    GenerationSummary,
    WantedResponses,
    ended_by,
    generate_missing,
)
from commands.errors import DeferredFailures, WorkInFlight, counted
from commands.ports import Backends, Console, Tell
from commands.spending import consent
from commands.spending.budget import BudgetReached, SpendingOptions
from commands.spending.endpoints import LedgerBilling, close_abandoned
from commands.spending.pricing import PriceBook
from ledger.events.responses import ResponseGenerated
from ledger.identity import EntrantId
from projections.tournament.matches import PlannedResponse, planned_responses
from projections.tournament.state import Tournament


def generate_with_consent(
    recorder: Recorder,
    wanted: WantedResponses,
    backends: Backends,
    book: PriceBook,
    spending: SpendingOptions,
    console: Console,
    *,
    waits: bool = True,
) -> GenerationSummary:
    """Generate every response that the ledger lacks, after asking for consent if it costs money.

    Batches are sent first, and go on while the other entrants are asked.

    Raises:
        Refused: The user did not confirm, or the cap is too low or reached; answers are recorded.
        NothingReadable: An entrant gave one empty text after the other, and more of it are missing.
        LeftUnanswered: Some requests got no answer.
        WorkInFlight: Responses are in batches, and the command does not wait for them, or they are
            another tournament's.
    """
    close_abandoned(recorder)
    options = BatchOptions(console.tell, console.on_progress, waits=waits)
    responder_of, max_usd = cache(backends.batch_responder), spending.max_usd
    batches = ResponseBatches(recorder, wanted, responder_of, book, options, max_usd=max_usd)
    with telling_what_goes_on(recorder, console.tell):
        batches.receive_earlier()
        missing = wanted.to_come(recorder.state)
        chosen = missing[: spending.limit]
        consent.approve_requests(recorder, book.requests(chosen), book, spending, console)
        billing = LedgerBilling(recorder, book.table, max_usd, console.tell)
        done = _generate(recorder, wanted, chosen, batches, backends, billing, console)
    _tell_empty(recorder.state, chosen, console.tell)
    _require_none_in_flight(recorder.state, wanted)
    return done._replace(n_missing=len(missing))


def _generate(
    recorder: Recorder,
    wanted: WantedResponses,
    chosen: Sequence[PlannedResponse],
    batches: ResponseBatches,
    backends: Backends,
    billing: LedgerBilling,
    console: Console,
) -> GenerationSummary:
    """Send batches, ask the other entrants, and receive; raise at the end what got no answer."""
    n_in_batches = sum(cell.entrant.entrant_id in batches.entrants for cell in chosen)
    batches.send(n_in_batches)
    done, failures = GenerationSummary(0, 0, 0), DeferredFailures()
    n_others, before = len(chosen) - n_in_batches, recorder.state
    ask_others = partial(
        generate_missing,
        recorder,
        partial(backends.generator, billing),
        wanted.prompts,
        on_progress=console.on_progress,
        retry=wanted.retry,
        halt=billing.halt,
        entrants=wanted.names(recorder.state) - batches.entrants,
    )
    with failures.collecting():
        try:
            done = ask_others(limit=n_others)
        except BudgetReached:  # a batch counts at its worst while it is in flight
            first = _ended_since(before, recorder.state)
            if not batches.receive_sent():
                raise
            n_left = max(0, n_others - first.n_generated - first.n_failed)
            done = first.plus(ask_others(limit=n_left))
    with failures.collecting():
        done = done.plus(batches.finish())
    failures.raise_collected()
    return done


def _ended_since(before: Tournament, now: Tournament) -> GenerationSummary:
    """Return what became of the responses that ended in between."""
    n_generated = len(now.responses) - len(before.responses)
    n_failed = len(now.response_failures) - len(before.response_failures)
    return GenerationSummary(n_generated + n_failed, n_generated, n_failed)


def _require_none_in_flight(state: Tournament, wanted: WantedResponses) -> None:
    """Require that no response is in a batch that another tournament of the ledger has sent.

    Raises:
        WorkInFlight: One is.
    """
    if not state.in_flight:
        return
    names, cells = wanted.names(state), planned_responses(state, wanted.prompts)
    keys = {cell.response_key for cell in cells if cell.entrant.entrant_id in names}
    for batch in state.batches.values():
        if batch.is_open and (awaited := keys.intersection(batch.planned.queries)):
            raise WorkInFlight(
                f"{counted(len(awaited), 'response')} in a batch with the provider; receive it"
                f" with the settings of tournament {batch.stream!r}"
            )


def _tell_empty(state: Tournament, generated: Sequence[PlannedResponse], tell: Tell) -> None:
    """Tell of each entrant that gave nothing but empty texts now."""
    texts: dict[EntrantId, list[ResponseGenerated]] = {}
    of_file = {cell.entrant.entrant_id for cell in generated if cell.entrant.loader == "recorded"}
    for cell in generated:
        if (response := state.responses.get(cell.response_key)) is not None:
            texts.setdefault(cell.entrant.entrant_id, []).append(response)
    for name, given in texts.items():
        if not any(each.text.strip() for each in given):
            n_empty = counted(len(given), "new response is", "new responses are")
            why = "its file has no others" if name in of_file else ended_by(given[-1].finish_reason)
            tell(f"entrant {name!r}: {n_empty} empty; {why}")
