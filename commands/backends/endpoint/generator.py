"""A generator on a server with OpenAI's API, such as vLLM or SGLang."""

import json
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from threading import Event
from time import perf_counter
from typing import Final, TypeAlias

from commands.backends.endpoint._replies import text_of
from commands.backends.endpoint.about import AboutServer, ask_about
from commands.backends.endpoint.refused_parameters import LearntParameters, described
from commands.backends.endpoint.requests import (
    PATH,
    PLAIN_PATH,
)
from commands.backends.endpoint.server import Endpoint, Post, post_by
from commands.backends.remote.outcomes import HeldRejections, Unanswered
from commands.backends.remote.pace import Pace
from commands.backends.remote.send import UsageBounds
from commands.backends.remote.sender import (
    LONGEST_REPORTED_WAIT_S,
    LONGEST_SILENT_WAIT_S,
    Sender,
    WaitLimits,
)
from commands.entrants.chats import as_json, prompt_messages
from commands.errors import LeftUnanswered
from commands.ports import (
    Billing,
    GeneratedText,
    GenerationFailure,
    GenerationOptions,
    GenerationTask,
    Tell,
)
from commands.spending.billing import NO_BILLING
from ledger.events.money import Usage
from ledger.events.options import EntrantOptions, Messages
from ledger.events.registration import Entrant
from ledger.events.requests import Charge
from ledger.identity import EntrantId, Json
from projections.tournament.estimate import FRAME_TOKENS


@dataclass(frozen=True)
class EntrantEndpoint:
    """An entrant's server, and the largest number of simultaneous requests."""

    server: Endpoint
    n_at_a_time: int


@dataclass(frozen=True)
class EndpointGenerator:
    """Answers tasks entrant by entrant, one request per task.

    The server renders the chat, counts the tokens and ends the answer. A prompt that it refuses,
    for instance as too long, has no answer; no prompt is truncated.
    """

    served: Mapping[EntrantId, EntrantEndpoint]
    tell: Tell | None = None  # reports long waits; None: there are none
    billing: Billing = NO_BILLING
    _paces: dict[str, Pace] = field(default_factory=dict)  # by server
    _about: dict[str, AboutServer] = field(default_factory=dict)  # by server
    _held: dict[Endpoint, HeldRejections[GenerationTask]] = field(default_factory=dict)
    _introduced: set[Entrant] = field(default_factory=set)  # what their servers say is recorded

    def billed_by(self, billing: Billing) -> "EndpointGenerator":
        """Return the same generator, whose requests are recorded and kept within the cap."""
        return replace(self, billing=billing)

    def generate(
        self, tasks: Sequence[GenerationTask]
    ) -> Iterator[tuple[GeneratedText | GenerationFailure, ...]]:
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
            for entrant, its_tasks in by_entrant.items():
                served = self.served[entrant.entrant_id]
                left = yield from self._answers(entrant, served, its_tasks, stops)
                if left:
                    name = f"entrant {entrant.entrant_id!r} at {served.server.base_url}"
                    details.setdefault(name, []).extend(left)
                if its_tasks and not self.billing.is_halted(
                    entrant
                ):  # Ctrl-C or the cap: `sending` raises which
                    return
        if details:
            raise LeftUnanswered(details)

    def _answers(
        self,
        entrant: Entrant,
        served: EntrantEndpoint,
        waiting: deque[GenerationTask],
        stops: Event,
    ) -> Generator[tuple[GeneratedText | GenerationFailure, ...], None, list[str]]:
        """Yield answers in groups as they come; return the messages of unanswered requests."""

        def take(n_at_most: int) -> Sequence[GenerationTask]:
            is_new = entrant not in self._introduced
            sent = self.billing.submit([*islice(waiting, n_at_most)], facts if is_new else None)
            for _ in sent:
                waiting.popleft()
            if sent:
                self._introduced.add(entrant)
            return sent

        details: list[str] = []
        tell = self.tell or (lambda _: None)
        with served.server.client() as client:
            url = served.server.base_url
            if url not in self._about:
                self._about[url] = ask_about(served.server, client)
            facts = self._about[url].facts(entrant.weights)
            learnt = LearntParameters(url, entrant.weights, self.billing.refused)
            sender = Sender[GenerationTask, GeneratedText | GenerationFailure](
                served.server.name,
                partial(_answer, served.server, learnt.adapt(post_by(client))),
                self._paces.setdefault(url, Pace()),
                n_at_a_time=served.n_at_a_time,
                held=self._held.setdefault(served.server, HeldRejections()),
                stops=stops,
                tell=tell,
                limits=WaitLimits(
                    LONGEST_SILENT_WAIT_S if self.tell is None else LONGEST_REPORTED_WAIT_S,
                    served.server.timeout_s,
                ),
            )
            bounds = UsageBounds(served.server.name, tell)
            for group in sender.run(take):
                if news := learnt.news():
                    self.billing.learn(news)
                for refused in news:
                    tell(described(refused))
                answers = [(task, _believed(task, answer, bounds)) for task, answer in group]
                self.billing.settle(entrant, [_ending(*each) for each in answers])
                results = [_result(task, answer) for task, answer in answers]
                unanswered = [each for each in results if isinstance(each, Unanswered)]
                details += [each.detail for each in unanswered if not each.is_again]
                waiting.extend(task for task, each in answers if _is_again(each))
                made = tuple(each for each in results if not isinstance(each, Unanswered))
                if made:
                    yield made
        return details


_Answer: TypeAlias = GeneratedText | GenerationFailure | Unanswered
_NO_USAGE: Final = "answered, and the server does not say credibly how many tokens it took"


def _is_again(answer: _Answer) -> bool:
    return isinstance(answer, Unanswered) and answer.is_again


def _believed(task: GenerationTask, answer: _Answer, bounds: UsageBounds) -> _Answer:
    """Return an answer without the tokens that it reports if there cannot be so many."""
    n_input = len(json.dumps(_body(task), ensure_ascii=False).encode()) + FRAME_TOKENS
    if bounds.holds(_usage(answer), n_input, task.entrant.max_new_tokens):
        return answer
    match answer:
        case GeneratedText():
            return replace(answer, n_prompt_tokens=None, n_generated_tokens=None)
        case GenerationFailure():
            return replace(answer, usage=None)
        case Unanswered():
            return answer


def _usage(answer: _Answer) -> Usage | None:
    match answer:
        case GeneratedText(n_prompt_tokens=int(n_input), n_generated_tokens=int(n_output)):
            return Usage(n_input, n_output)
        case GenerationFailure(usage=usage):
            return usage
        case _:
            return None


def _ending(task: GenerationTask, answer: _Answer) -> Charge:
    """Return what became of a request; its cost is not known here."""
    match answer:
        case GeneratedText() | GenerationFailure():
            usage, key = _usage(answer), task.response_key
            if usage is None:  # it was billed, and nobody knows how much
                return Charge(request=key, fate="perhaps billed", detail=_NO_USAGE)
            return Charge(request=key, fate="answered", usage=usage)
        case Unanswered(detail=detail, fate=fate):
            return Charge(request=task.response_key, fate=fate, detail=detail)


def _result(task: GenerationTask, answer: _Answer) -> _Answer:
    """Return an answer; a rejection is a fact about its task."""
    if isinstance(answer, Unanswered) and answer.reason == "rejected":
        return GenerationFailure(task.response_key, "rejected", answer.detail)
    return answer


def _answer(server: Endpoint, post: Post, task: GenerationTask) -> _Answer:
    began_at = perf_counter()
    return server.answer(
        partial(post, PATH if task.options.is_chat else PLAIN_PATH, _body(task)),
        lambda body: text_of(
            task.response_key,
            body,
            elapsed_s=perf_counter() - began_at,
            stop=task.options.stop,
        ),
    )


def _body(task: GenerationTask) -> Mapping[str, Json]:
    """Return the JSON of a task, as a chat or as plain text.

    Options that greedy decoding ignores are left out.
    """
    entrant, options = task.entrant, task.options
    body: dict[str, Json] = {
        "model": entrant.weights,
        "max_tokens": entrant.max_new_tokens,
        "temperature": entrant.temperature or 0.0,
    }
    prompt = entrant.chosen.around(task.prompt_text)
    messages = task.messages or prompt_messages(entrant.chosen.system, prompt)
    body |= _chat(entrant.chosen, messages) if options.is_chat else {"prompt": prompt}
    if entrant.temperature is not None:
        body |= {"seed": task.seed, **_sampling(options)}
    if options.repetition_penalty != 1:
        body["repetition_penalty"] = options.repetition_penalty
    if options.stop:
        body["stop"] = options.stop
    body |= json.loads(entrant.chosen.extra_body or "{}")
    return body


def _chat(options: EntrantOptions, messages: Messages) -> Mapping[str, Json]:
    """Return the turns of a chat; vLLM and SGLang let an answer go on."""
    chat: dict[str, Json] = {"messages": tuple(as_json(messages))}
    if messages[-1][0] == "assistant":
        chat |= {"add_generation_prompt": False, "continue_final_message": True}
    if options.template_arguments:
        chat["chat_template_kwargs"] = json.loads(options.template_arguments)
    return chat


def _sampling(options: GenerationOptions) -> Mapping[str, Json]:
    """Return from which tokens to sample, as far as it is not from all."""
    chosen = {"top_p": options.top_p, "top_k": options.top_k, "min_p": options.min_p}
    unset = {"top_p": 1.0, "top_k": None, "min_p": 0.0}
    return {name: value for name, value in chosen.items() if value != unset[name]}
