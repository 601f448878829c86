"""Use case: entrants respond in batches, which go on without this process.

How batches are sent and received is in `commands/batching`. The answers to a conversation come one
batch after the other: what is asked next depends on them.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from math import fsum
from typing import TypeAlias

from commands.batching.receiving import BatchOptions, BatchReceiver
from commands.batching.sending import BatchSender
from commands.decisions.commands import (
    Command,
    PlanBatch,
    RecordResponse,
    SubmitBatch,
    SubmitRequests,
)
from commands.decisions.recorder import Recorder
from commands.entrants.endpoint_generator import believed, ending_of, result_of
from commands.entrants.generate import GenerationSummary, WantedResponses, task_of, why_stop
from commands.errors import LeftUnanswered, NothingReadable, counted
from commands.ports import (
    BatchAnswer,
    BatchResponder,
    BatchResponderOf,
    BatchState,
    GeneratedText,
    GenerationFailure,
    GenerationTask,
    NoReply,
    Reply,
    Tell,
    key_of,
)
from commands.spending.endpoints import (
    CredibleUsage,
    endpoint_costs,
    n_affordable_requests,
    request_worst_usd,
    settlement,
)
from commands.spending.price_table import PriceTable
from commands.spending.pricing import PriceBook
from ledger.errors import TourneyError
from ledger.events.registration import Entrant, Reference
from ledger.events.responses import ResponseFailureReason
from ledger.identity import Digest, EntrantId
from projections.tournament.estimate import FRAME_TOKENS
from projections.tournament.matches import PlannedResponse, planned_responses
from projections.tournament.remaining import is_missing, missing_responses
from projections.tournament.requests import Batch, RequestKey

_Answer: TypeAlias = GeneratedText | GenerationFailure | NoReply


class ResponseBatches:
    """Sends and receives the responses that entrants give in batches."""

    def __init__(
        self,
        recorder: Recorder,
        wanted: WantedResponses,
        responder_of: BatchResponderOf,
        book: PriceBook,
        options: BatchOptions,
        *,
        max_usd: float | None,
    ) -> None:
        """Take the tournament, what is wanted, who responds at what price, and the cap.

        Of the entrants that are wanted, those respond in batches of which the price book says so;
        batches in flight are received of all.
        """
        self._recorder, self._wanted, self._book, self._max_usd = recorder, wanted, book, max_usd
        self.entrants = wanted.names(recorder.state) & book.batched
        self._responder_of = responder_of
        self._side = EntrantSide(recorder, responder_of, book.table, options.tell)
        self._reception = BatchReceiver(recorder, lambda _: self._side, options, wants=self._wants)
        self._senders: dict[Entrant, BatchSender[PlannedResponse]] = {}
        self._chosen: set[Digest] = set()
        self._n_most = 0

    def _wants(self, batch: Batch) -> bool:
        is_wanted = (
            self._wanted.entrants is None or batch.planned.judge.label in self._wanted.entrants
        )
        return is_wanted and self._recorder.state.is_to_entrant(batch)

    def receive_earlier(self) -> None:
        """Receive what earlier commands sent, as of `BatchReceiver`."""
        self._reception.receive_earlier()

    def send(self, n_most: int) -> None:
        """Send what is missing and can be asked now, up to so many responses in all."""
        self._n_most = n_most
        self._send()

    def receive_sent(self) -> bool:
        """Receive what is in flight; say whether anything was.

        Raises:
            WorkInFlight: The command does not wait for the batches; they go on.
        """
        is_any = bool(self._reception.open_batches)
        self._reception.receive_all()
        return is_any

    def finish(self) -> GenerationSummary:
        """Receive what was sent, and send what can be asked then, until nothing is left.

        Raises:
            WorkInFlight: The command does not wait for the batches; they go on.
            LeftUnanswered: Some requests got no answer.
        """
        self._reception.receive_all(self._send)
        if unanswered := self._side.unanswered:
            raise LeftUnanswered(unanswered)
        n_chosen, responses = len(self._chosen), self._recorder.state.responses
        n_generated = sum(key in responses for key in self._chosen)
        return GenerationSummary(n_chosen, n_generated, n_chosen - n_generated)

    def _send(self) -> None:
        state, wanted = self._recorder.state, self._wanted
        by_entrant: dict[Entrant, list[PlannedResponse]] = {}
        for cell in missing_responses(state, wanted.prompts, wanted.retry, self.entrants):
            if cell.response_key in self._chosen or len(self._chosen) < self._n_most:
                self._chosen.add(cell.response_key)
                by_entrant.setdefault(cell.entrant, []).append(cell)
        # each provider is made first: what can be checked is, before any is sent anything
        for sender, cells in [
            (self._sender(entrant), by_entrant[entrant]) for entrant in by_entrant
        ]:
            sender.send(cells)

    def _sender(self, entrant: Entrant) -> BatchSender[PlannedResponse]:
        if entrant not in self._senders:
            port = self._responder_of(entrant)
            work = _ResponseWork(
                self._recorder, entrant, port, self._book, self._wanted.retry, self._max_usd
            )
            self._senders[entrant] = BatchSender(self._recorder, work, self._reception)
        return self._senders[entrant]


class _ResponseWork:
    """The missing responses of one entrant, as `BatchWork`."""

    n_tries = 1  # what is left unanswered is asked by another command, as where it is asked alone

    def __init__(
        self,
        recorder: Recorder,
        entrant: Entrant,
        port: BatchResponder,
        book: PriceBook,
        retry: Collection[ResponseFailureReason],
        max_usd: float | None,
    ) -> None:
        self._recorder, self._entrant, self.port = recorder, entrant, port
        self._book, self._retry, self._max_usd = book, retry, max_usd

    def request(self, item: PlannedResponse, /) -> GenerationTask:
        """Return the task."""
        return task_of(item)

    def still_open(self, items: Iterable[PlannedResponse], /) -> Sequence[PlannedResponse]:
        """Return the responses that are missing."""
        state = self._recorder.state
        return [response for response in items if is_missing(state, response, self._retry)]

    def affordable(self, items: Sequence[PlannedResponse], /) -> Sequence[PlannedResponse]:
        """Return as many of the first responses as the cap allows."""
        worst = [*self._worst_usd(items).values()]
        return items[: n_affordable_requests(self._recorder.state, worst, self._max_usd)]

    def plan(self, items: Sequence[PlannedResponse], planned_at: datetime, /) -> Sequence[Command]:
        """Return the plan, and the submission of its requests at what each costs at worst."""
        entrant, worst = self._entrant, self._worst_usd(items)
        (cost,) = endpoint_costs(self._book.requests(items), self._book.table)
        known = [usd for usd in worst.values() if usd is not None]
        planned = PlanBatch(
            Reference(label=entrant.entrant_id, digest=entrant.content_digest),
            tuple(worst),
            cost.expected_usd,
            fsum(known) if len(known) == len(worst) else None,
            self._max_usd,
            planned_at=planned_at,
        )
        return [planned, SubmitRequests(entrant.entrant_id, entrant.weights, worst)]

    def submission(
        self, key: Digest, created: BatchState, _items: Sequence[PlannedResponse], /
    ) -> SubmitBatch:
        """Return the submission."""
        return SubmitBatch(key, created)

    def require_readable(self, ended: Sequence[Batch], /) -> None:
        """Require that this entrant's responses are not one empty text after the other."""
        n_empty, entrant = Counter[EntrantId](), self._entrant
        own = (batch for batch in ended if batch.planned.judge.label == entrant.entrant_id)
        for key in (key for batch in own for key in batch.planned.queries):
            response = self._recorder.state.responses.get(key)
            why = response and why_stop(entrant, response.text, response.finish_reason, n_empty)
            if why:
                raise NothingReadable(why)

    def _worst_usd(self, items: Iterable[PlannedResponse]) -> Mapping[Digest, float | None]:
        table = self._book.table
        return {
            response.response_key: request_worst_usd(
                response.entrant, response.text, table, in_batch=True
            )
            for response in items
        }


class EntrantSide:
    """The batches of entrants, as `BatchSide`."""

    def __init__(
        self, recorder: Recorder, port_of: BatchResponderOf, prices: PriceTable, tell: Tell
    ) -> None:
        self._recorder, self._port_of, self._prices, self._tell = recorder, port_of, prices, tell
        self._cells: dict[Digest, Mapping[Digest, PlannedResponse]] = {}  # by batch
        self._credible: dict[Entrant, CredibleUsage] = {}
        self._errors: dict[RequestKey, str] = {}  # of requests whose last try got no answer

    @property
    def unanswered(self) -> Mapping[str, Sequence[str]]:
        """The errors of requests without a response, by whom they were sent to."""
        errors: dict[str, list[str]] = {}
        for sent, error in self._errors.items():
            if sent.request not in self._recorder.state.responses:
                errors.setdefault(f"entrant {sent.entrant!r} in batches", []).append(error)
        return errors

    def port_of(self, batch: Batch) -> BatchResponder:
        """Return the port of the entrant that a batch was planned for."""
        return self._port_of(self._entrant(batch))

    def submission(self, batch: Batch, found: BatchState) -> SubmitBatch:
        """Return the submission; the requests are on record since the plan."""
        return SubmitBatch(batch.planned.batch_key, found)

    def lost(self, batch: Batch) -> tuple[Digest, ...]:
        """Return the keys of responses that may have been paid for, and are not asked for again."""
        state, entrant = self._recorder.state, self._entrant(batch)
        known = (state.responses, state.response_failures, state.in_flight)
        return tuple(
            key
            for key in batch.planned.queries
            if state.requests.fates.get(RequestKey(entrant.entrant_id, key)) == "perhaps billed"
            and not any(key in each for each in known)
        )

    def record(self, batch: Batch, answers: Sequence[BatchAnswer]) -> None:
        """Record responses together with what they cost, at the price of batches."""
        state, entrant, cells = self._recorder.state, self._entrant(batch), self._cells_of(batch)
        due = [
            self._believed(batch, answer)
            for answer in answers
            if not isinstance(answer, Reply) and state.is_awaited(batch, key_of(answer))
        ]
        if not due:
            return
        brought = [each for each in map(result_of, due) if each is not None]
        self._note_errors(entrant, due)
        news = [each for each in brought if each.response_key not in state.responses]
        placed = [each for each in news if each.response_key in cells]
        n_left_out = len(news) - len(placed)
        if n_left_out and not state.redactions.positions:
            raise TourneyError(
                f"{n_left_out} responses of the batch planned at position {batch.recorded.position}"
                " are unknown to this version of tourney; continue with the version that planned it"
            )
        self._recorder.record(
            settlement(state, entrant, map(ending_of, due), self._prices, in_batch=True),
            *(RecordResponse(cells[each.response_key], each) for each in placed),
        )
        if n_left_out:
            self._tell(
                f"{counted(n_left_out, 'result')} for entrant {entrant.entrant_id!r} left out, and"
                " the cost recorded: what was asked is not on record, as after an earlier answer"
                " was redacted"
            )

    def _note_errors(self, entrant: Entrant, ended: Iterable[_Answer]) -> None:
        for each in ended:
            sent = RequestKey(entrant.entrant_id, key_of(each))
            self._errors.pop(sent, None)
            if isinstance(each, NoReply) and result_of(each) is None:
                self._errors[sent] = each.detail

    def _entrant(self, batch: Batch) -> Entrant:
        return self._recorder.state.entrants[batch.planned.judge]

    def _believed(self, batch: Batch, answer: _Answer) -> _Answer:
        """Return an answer without the tokens that it reports if there cannot be so many."""
        entrant, cell = self._entrant(batch), self._cells_of(batch).get(key_of(answer))
        if cell is None:
            return answer
        n_input = self._port_of(entrant).n_bytes(task_of(cell)) + FRAME_TOKENS
        whom = f"entrant {entrant.entrant_id!r}"
        credible = self._credible.setdefault(entrant, CredibleUsage(whom, self._tell))
        return believed(credible, answer, entrant, n_input)

    def _cells_of(self, batch: Batch) -> Mapping[Digest, PlannedResponse]:
        """Return what an entrant could be asked as of the plan of a batch, by response key.

        One that was taken up again was planned when the provider took it first.
        """
        key, submitted = batch.planned.batch_key, batch.submitted
        if key not in self._cells:
            first = next(
                each
                for each in self._recorder.state.own_batches
                if each.submitted
                and submitted
                and each.submitted.provider_batch_id == submitted.provider_batch_id
            )
            before = self._recorder.as_of(first.recorded.position - 1)
            bank = [prompt.prompt_id for prompt in before.bank]
            cells = reversed(planned_responses(before, bank))  # of equal ones the first
            entrant = self._entrant(batch)
            self._cells[key] = {
                cell.response_key: cell for cell in cells if cell.entrant == entrant
            }
        return self._cells[key]
