"""Requests to endpoint entrants: what those to come cost, and what was spent, within the cap.

Each request is recorded with its worst cost before it is sent, and with its cost when it ends.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import fsum
from threading import Event
from typing import NamedTuple

from msgspec.structs import replace

from commands.decisions.commands import (
    ReceiveAnswer,
    RecordFact,
    SettleRequests,
    SubmitRequests,
)
from commands.decisions.recorder import Recorder
from commands.errors import Refused
from commands.ports import GenerationTask, NoReply, Tell
from commands.signals import stopping_gently
from commands.spending.budget import everything_usd, n_affordable
from commands.spending.price_table import PriceTable
from ledger.errors import StaleVersion
from ledger.events.money import Usage, cost_usd
from ledger.events.registration import Entrant
from ledger.events.requests import Charge, ParameterRefused, ServerFacts
from ledger.identity import EntrantId
from projections.tournament.estimate import BYTES_PER_TOKEN, FRAME_TOKENS, may_have_used, n_bytes
from projections.tournament.requests import EntrantKey, RequestKey
from projections.tournament.state import Tournament


class Request(NamedTuple):
    """A prompt to send to an entrant."""

    entrant: Entrant
    prompt_text: str
    in_batch: bool = False


@dataclass(frozen=True)
class EndpointCost:
    """The estimated cost of requests to one entrant; None: the price is unknown."""

    entrant_id: EntrantId
    model: str  # the server's name for it
    n_requests: int
    n_input: int  # tokens, estimated from bytes
    n_output: int  # tokens, at most
    expected_usd: float | None
    worst_usd: float | None  # if every byte were a token
    in_batch: bool


def endpoint_costs(requests: Iterable[Request], prices: PriceTable) -> tuple[EndpointCost, ...]:
    """Estimate the cost of endpoint entrants; weights on this machine cost nothing.

    The price is that of the model's name in the table. Every answer counts at its maximum length.
    """
    texts: dict[tuple[Entrant, bool], list[str]] = {}
    for entrant, prompt_text, in_batch in requests:
        if entrant.loader == "endpoint":
            texts.setdefault((entrant, in_batch), []).append(prompt_text)
    return tuple(
        _cost(entrant, each, prices, in_batch=in_batch)
        for (entrant, in_batch), each in texts.items()
    )


def _cost(
    entrant: Entrant, texts: list[str], prices: PriceTable, *, in_batch: bool
) -> EndpointCost:
    n_output = entrant.max_new_tokens
    likely = [Usage(round(_n_sent(entrant, text) / BYTES_PER_TOKEN), n_output) for text in texts]
    worst = [_at_worst(entrant, text) for text in texts]
    return EndpointCost(
        entrant_id=entrant.entrant_id,
        model=entrant.weights,
        n_requests=len(texts),
        n_input=sum(usage.n_input for usage in likely),
        n_output=sum(usage.n_output for usage in likely),
        expected_usd=_usd(entrant.weights, likely, prices, in_batch=in_batch),
        worst_usd=_usd(entrant.weights, worst, prices, in_batch=in_batch),
        in_batch=in_batch,
    )


def _usd(
    model: str, usages: Iterable[Usage], prices: PriceTable, *, in_batch: bool
) -> float | None:
    priced = prices.of(model)
    if priced is None:
        return None
    return fsum(cost_usd(usage, priced.price(usage, in_batch=in_batch)) for usage in usages)


def request_worst_usd(
    entrant: Entrant, prompt_text: str, prices: PriceTable, *, in_batch: bool = False
) -> float | None:
    """Return what one request costs at worst; None: the price is unknown."""
    return _usd(entrant.weights, [_at_worst(entrant, prompt_text)], prices, in_batch=in_batch)


def _at_worst(entrant: Entrant, prompt_text: str) -> Usage:
    """Return the usage if every byte were a token, and the answer as long as may be."""
    further = (entrant.chosen.extra_body or "") + (entrant.chosen.template_arguments or "")
    n_input = _n_sent(entrant, prompt_text) + n_bytes(further) + FRAME_TOKENS
    return Usage(n_input, entrant.max_new_tokens)


def _n_sent(entrant: Entrant, prompt_text: str) -> int:
    """Return the bytes of a prompt with the text around it and the system prompt."""
    whole = entrant.chosen.around(prompt_text) + (entrant.chosen.system or "")
    return n_bytes(whole)


def learn_refused(recorder: Recorder, refused: Sequence[ParameterRefused], tell: Tell) -> None:
    """Record what servers were found not to take, and tell what is sent in its place."""
    known = {refusal.natural_key for refusal in recorder.state.refused_parameters}
    news = {refusal.natural_key: refusal for refusal in refused if refusal.natural_key not in known}
    recorder.record(*map(RecordFact, news.values()))
    for refusal in news.values():
        otherwise = f"{refusal.instead} is sent instead" if refusal.instead else "it is left out"
        tell(
            f"{refusal.model} at {refusal.base_url} does not take {refusal.parameter}: {otherwise},"
            " in all later requests, too"
        )


class CredibleUsage:
    """Tells of the first answer of a server that reports more tokens than there can be."""

    def __init__(self, server: str, tell: Tell) -> None:
        """Take the server's name in messages, and how to tell."""
        self._server, self._tell = server, tell
        self._has_told = False

    def is_credible(self, usage: Usage | None, n_input: int | None, n_output: int | None) -> bool:
        """Return whether a usage is within bounds in tokens; None: nothing bounds them."""
        if usage is None or may_have_used(usage, n_input, n_output):
            return True
        if not self._has_told:
            most = " and ".join("any number" if n is None else str(n) for n in (n_input, n_output))
            self._tell(
                f"{self._server} reports {usage.n_prompt} tokens in and {usage.n_output} out, but"
                f" {most} are the most that there can be: such an answer counts at its worst cost"
            )
        self._has_told = True
        return False


class LedgerBilling:
    """Records the requests of one command, and refuses those that might exceed the cap."""

    def __init__(
        self, recorder: Recorder, prices: PriceTable, cap_usd: float | None, tell: Tell
    ) -> None:
        """Take the tournament, the prices and the cap; None: there is no cap."""
        self._recorder, self._prices, self._cap_usd, self._tell = recorder, prices, cap_usd, tell
        self._stopped_by: Refused | None = None
        self._halted: set[EntrantId] = set()

    def halt(self, entrant: EntrantId) -> None:
        """Let an entrant be sent nothing more; what is under way is recorded."""
        self._halted.add(entrant)

    def is_halted(self, entrant: Entrant) -> bool:
        """Say whether `halt` was called of an entrant."""
        return entrant.entrant_id in self._halted

    @property
    def refused(self) -> Sequence[ParameterRefused]:
        """What servers were found not to take, in this ledger."""
        return self._recorder.state.refused_parameters

    def learn(self, refused: Sequence[ParameterRefused]) -> None:
        """Record and tell what a server was found not to take."""
        learn_refused(self._recorder, refused, self._tell)

    @contextmanager
    def sending(self) -> Iterator[Event]:
        """Yield an event that Ctrl-C sets.

        Raises:
            KeyboardInterrupt: Ctrl-C stopped the requests; the answers under way are recorded.
            Refused: The cap did.
        """
        with stopping_gently(self._tell) as stops:
            try:
                yield stops
            finally:
                self._recorder.record()  # what ended without an answer
        if stops.is_set():
            raise KeyboardInterrupt
        if self._stopped_by is not None:
            raise self._stopped_by

    def submit(
        self, tasks: Sequence[GenerationTask], server: ServerFacts | None = None, /
    ) -> Sequence[GenerationTask]:
        """Record the first of one entrant's tasks as sent, and return them.

        Returns:
            As many as the cap allows in the worst case; none if that is none, or after its `halt`.
        """
        self._recorder.record()  # what ended frees its share of the cap
        if tasks and self.is_halted(tasks[0].entrant):
            return ()
        worst = {
            task.response_key: request_worst_usd(task.entrant, task.prompt_text, self._prices)
            for task in tasks
        }
        while worst:
            try:
                usd, state = [*worst.values()], self._recorder.state
                n_allowed = n_affordable_requests(state, usd, self._cap_usd)
                allowed = dict([*worst.items()][:n_allowed])
                entrant = tasks[0].entrant
                self._recorder.record(
                    SubmitRequests(entrant.entrant_id, entrant.weights, allowed, server)
                )
            except Refused as stop:
                self._stopped_by = stop
                return ()
            except StaleVersion:  # of a merge or a sample: the cap is checked again
                continue
            self._stopped_by = None
            return tasks[: len(allowed)]
        return ()

    def settle(self, entrant: Entrant, endings: Sequence[Charge]) -> None:
        """Let what became of an entrant's requests be recorded with its answers."""
        self._recorder.record()  # what ended before, and brought no answer
        self._recorder.defer(settlement(self._recorder.state, entrant, endings, self._prices))


def n_affordable_requests(
    state: Tournament, worst_usd: Sequence[float | None], cap_usd: float | None
) -> int:
    """Return how many requests to entrants a cap allows; one without a price counts as nothing.

    Raises:
        BudgetReached: Not even the first is affordable.
    """
    if cap_usd is None:
        return len(worst_usd)
    known = [usd or 0.0 for usd in worst_usd]
    return n_affordable(known, cap_usd=cap_usd, bound_usd=everything_usd(state))


def settlement(
    state: Tournament,
    entrant: Entrant,
    endings: Iterable[Charge],
    prices: PriceTable,
    *,
    in_batch: bool = False,
) -> SettleRequests:
    """Return how to record what became of an entrant's requests, at the prices of now."""
    priced = prices.of(entrant.weights)

    def charged(ending: Charge) -> Charge:
        match ending:
            case Charge(fate="answered", usage=Usage() as usage):
                price = priced and priced.price(usage, in_batch=in_batch)
                return replace(ending, usd=price and cost_usd(usage, price))
            case Charge(fate="perhaps billed", request=request):
                sent = state.requests.under_way.get(RequestKey(entrant.entrant_id, request))
                return replace(ending, usd=sent and sent.worst_usd)
            case _:
                return ending

    title = None if priced is None else priced.source.title
    return SettleRequests(entrant.entrant_id, entrant.weights, tuple(map(charged, endings)), title)


def close_abandoned(recorder: Recorder) -> None:
    """Record that requests of a process that died were perhaps billed; they are open again.

    Those in batches go on without a process.
    """
    state, why = recorder.state, "the process ended before its answer"
    judges = {judge.judge_id: judge for judge in state.judges.values()}
    of_judges = [
        ReceiveAnswer(
            judges[sent.judge],
            NoReply(query_key, "errored", why, "perhaps billed"),
            worst_usd=sent.worst_usd,
        )
        for query_key, sent in state.under_way.items()
    ]
    of_entrants: dict[EntrantKey, list[Charge]] = {}
    in_batches = {key for batch in state.open_batches for key in batch.planned.queries}
    for (entrant, request), (model, worst_usd) in state.requests.under_way.items():
        if request in in_batches:
            continue
        charge = Charge(request=request, fate="perhaps billed", usd=worst_usd, detail=why)
        of_entrants.setdefault(EntrantKey(entrant, model), []).append(charge)
    settled = [SettleRequests(*key, tuple(charges)) for key, charges in of_entrants.items()]
    recorder.record(*of_judges, *settled)
