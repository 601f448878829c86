"""Use case: generate responses of entrants that servers answer for, several at a time.

Each request is recorded with its worst cost before it is sent, and its end together with the
response that it brought.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from threading import Event
from typing import Final, TypeAlias

from commands.asking.pace import Pace
from commands.asking.pool import LONGEST_WAIT_S, Pool
from commands.asking.rejections import HeldRejections
from commands.errors import LeftUnanswered
from commands.ports import (
    Billing,
    GeneratedText,
    GenerationFailure,
    GenerationTask,
    NoReply,
    Responder,
    ResponderOf,
    Tell,
    key_of,
)
from commands.spending.endpoints import CredibleUsage
from ledger.events.money import Usage
from ledger.events.registration import Entrant
from ledger.events.requests import Charge, ServerFacts

LONGEST_SILENT_WAIT_S: Final = 120.0  # longer looks like a hang
_NO_USAGE: Final = "answered, and the server does not say credibly how many tokens it took"
_Result: TypeAlias = GeneratedText | GenerationFailure
_Answer: TypeAlias = GeneratedText | GenerationFailure | NoReply


@dataclass(frozen=True)
class EndpointGenerator:
    """Answers tasks entrant by entrant, one request per task."""

    responder_of: ResponderOf
    billing: Billing  # records its requests, and keeps the cap
    tell: Tell | None = None  # reports long waits; None: there are none
    _paces: dict[str, Pace] = field(default_factory=dict)  # by server
    _held: dict[Entrant, HeldRejections[GenerationTask]] = field(default_factory=dict)
    _facts: dict[Entrant, ServerFacts | None] = field(default_factory=dict)  # None: on record

    def generate(self, tasks: Sequence[GenerationTask]) -> Iterator[tuple[_Result, ...]]:
        """Yield answers as they come; raise at the end if tasks are unanswered.

        A failed request does not stop the others. A failure that affects all requests stops the
        run; answers to requests already sent are still yielded.

        Raises:
            NoCredentials: A server needs a key, or refuses it.
            ConfigurationError: A server does not have the model.
            SpendLimitReached: The server's credit is used up.
            ProviderError: A server cannot be reached, is another API, rejects every request, or
                fails too often in a row.
            LeftUnanswered: Some tasks got no answer.
            Refused: The cap allows no further request.
        """
        by_entrant: dict[Entrant, deque[GenerationTask]] = {}
        for task in tasks:
            by_entrant.setdefault(task.entrant, deque()).append(task)
        details: dict[str, list[str]] = {}
        with self.billing.sending() as stops:
            for entrant, waiting in by_entrant.items():
                responder = self.responder_of(entrant, self.billing.refused)
                lost: list[str] = []  # why requests were left unanswered
                yield from self._answers(entrant, responder, waiting, lost, stops)
                if lost:
                    name = f"entrant {entrant.entrant_id!r} at {responder.url}"
                    details.setdefault(name, []).extend(lost)
                if waiting and not self.billing.is_halted(entrant):
                    return  # Ctrl-C or the cap: `sending` raises which
        if details:
            raise LeftUnanswered(details)

    def _answers(
        self,
        entrant: Entrant,
        responder: Responder,
        waiting: deque[GenerationTask],
        lost: list[str],
        stops: Event,
    ) -> Iterator[tuple[_Result, ...]]:
        """Yield the answers of one entrant in groups as they come."""
        if entrant not in self._facts:  # asked once, before threads are taken for its tasks
            self._facts[entrant] = responder.facts()
        credible = CredibleUsage(responder.host.name, self._say)
        pool: Pool[GenerationTask, _Result] = Pool(
            responder.host,
            responder.ask,
            attrgetter("response_key"),
            stops=stops,
            tell=self._say,
            pace=self._paces.setdefault(responder.url, Pace()),
            held=self._held.setdefault(entrant, HeldRejections()),
            longest_wait_s=LONGEST_SILENT_WAIT_S if self.tell is None else LONGEST_WAIT_S,
        )
        with pool:
            for group in pool.settle_all(waiting, partial(self._submit, entrant, waiting)):
                answers = [
                    (
                        task,
                        believed(credible, answer, task.entrant, responder.n_input_at_most(task)),
                    )
                    for task, answer in group
                ]
                if answers and (brought := self._settle(entrant, answers, waiting, lost)):
                    yield brought

    def _say(self, what: str) -> None:
        if self.tell is not None:
            self.tell(what)

    def _submit(
        self, entrant: Entrant, waiting: deque[GenerationTask], n_at_most: int
    ) -> Sequence[GenerationTask]:
        """Record the first tasks as sent; what its server says of itself is recorded once."""
        sent = self.billing.submit([waiting[n] for n in range(n_at_most)], self._facts[entrant])
        if sent:
            self._facts[entrant] = None
        for _ in sent:
            waiting.popleft()
        return sent

    def _settle(
        self,
        entrant: Entrant,
        answers: Sequence[tuple[GenerationTask, _Answer]],
        waiting: deque[GenerationTask],
        lost: list[str],
    ) -> tuple[_Result, ...]:
        """Let the ends of requests be recorded; return what they brought."""
        for _, answer in answers:
            if isinstance(answer, GeneratedText) and answer.refused:
                self.billing.learn(answer.refused)
        self.billing.settle(entrant, [ending_of(answer) for _, answer in answers])
        brought: list[_Result] = []
        for task, answer in answers:
            if (result := result_of(answer)) is not None:
                brought.append(result)
            elif isinstance(answer, NoReply) and answer.then == "wait":
                waiting.append(task)
            elif isinstance(answer, NoReply):
                lost.append(answer.detail)
        return tuple(brought)


def result_of(answer: _Answer) -> _Result | None:
    """Return what an answer brought; None: nothing. A rejection is a fact about the task."""
    if not isinstance(answer, NoReply):
        return answer
    if answer.reason == "rejected":
        return GenerationFailure(answer.query_key, "rejected", answer.detail)
    return None


def believed(
    credible: CredibleUsage, answer: _Answer, entrant: Entrant, n_input: int | None
) -> _Answer:
    """Return an answer without the tokens that it reports if there cannot be so many."""
    usage = _usage(answer)
    if usage is None or credible.is_credible(usage, n_input, entrant.max_new_tokens):
        return answer
    if isinstance(answer, GeneratedText):
        return replace(answer, n_prompt_tokens=None, n_generated_tokens=None)
    if isinstance(answer, GenerationFailure):
        return replace(answer, usage=None)
    return answer


def _usage(answer: _Answer) -> Usage | None:
    match answer:
        case GeneratedText(n_prompt_tokens=int(n_input), n_generated_tokens=int(n_output)):
            return Usage(n_input, n_output)
        case GenerationFailure(usage=usage):
            return usage
        case _:
            return None


def ending_of(answer: _Answer) -> Charge:
    """Return what became of a request; its cost is not known here."""
    key = key_of(answer)
    if isinstance(answer, NoReply):
        return Charge(request=key, fate=answer.fate, detail=answer.detail)
    usage = _usage(answer)
    if usage is None:  # it was billed, and nobody knows how much
        return Charge(request=key, fate="perhaps billed", detail=_NO_USAGE)
    return Charge(request=key, fate="answered", usage=usage)
