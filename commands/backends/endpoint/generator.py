"""A generator on a server with OpenAI's API, such as vLLM or SGLang."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Event
from time import perf_counter
from typing import TypedDict

import openai
from openai.types.chat import ChatCompletionUserMessageParam

from commands.backends.endpoint._replies import text_of
from commands.backends.endpoint.server import N_PROBES, Endpoint, ServerProbe, UnansweredRequest
from commands.errors import LeftUnanswered, ProviderError
from commands.ports import GeneratedText, GenerationFailure, GenerationOptions, GenerationTask
from ledger.events.registration import Entrant
from ledger.identity import EntrantId


@dataclass(frozen=True)
class EntrantEndpoint:
    """An entrant's server, and the largest number of simultaneous requests."""

    server: Endpoint
    n_at_a_time: int


class _DecodingOptions(TypedDict):
    model: str
    max_tokens: int
    temperature: float
    seed: int | openai.Omit
    stop: list[str] | openai.Omit
    top_p: float | openai.Omit


class EndpointGenerator:
    """Answers tasks entrant by entrant, one request per task.

    The server renders the chat, counts the tokens and ends the answer. A prompt that it refuses,
    for instance as too long, has no answer; no prompt is truncated.
    """

    def __init__(self, served: Mapping[EntrantId, EntrantEndpoint]) -> None:
        self._served = served
        self._probes: dict[tuple[Entrant, GenerationOptions], ServerProbe] = {}

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
        """
        by_entrant: dict[EntrantId, list[GenerationTask]] = {}
        for task in tasks:
            by_entrant.setdefault(task.entrant.entrant_id, []).append(task)
        details: dict[str, list[str]] = {}
        is_failing = False
        for entrant_id, its_tasks in by_entrant.items():
            served = self._served[entrant_id]
            # a server may accept one kind of request and reject another
            kind = its_tasks[0].entrant, its_tasks[0].options
            probe = self._probes.setdefault(kind, ServerProbe(served.server))
            with served.server.client() as client:
                left, has_failed = yield from _answers(served, client, its_tasks, probe)
            if left:
                details[f"entrant {entrant_id!r} at {served.server.base_url}"] = left
            is_failing |= has_failed
        if details:
            unanswered = LeftUnanswered(details)
            raise ProviderError(unanswered.why) if is_failing else unanswered


def _answers(
    served: EntrantEndpoint,
    client: openai.OpenAI,
    tasks: Sequence[GenerationTask],
    probe: ServerProbe,
) -> Generator[tuple[GeneratedText | GenerationFailure], None, tuple[list[str], bool]]:
    """Yield answers; stop after too many failures in a row.

    Return the messages of unanswered requests, and whether the server failed altogether.
    """
    details: list[str] = []
    n_in_a_row, is_failing, stops = 0, False, Event()
    ask = partial(_answer, served.server, client)
    for answer in probe.ask_all(tasks, ask, n_at_a_time=served.n_at_a_time, stops=stops):
        if isinstance(answer, UnansweredRequest):
            details.append(answer.detail)
            n_in_a_row += 1
        else:
            n_in_a_row = 0
            yield (answer,)
        if n_in_a_row == N_PROBES:
            is_failing = True
            stops.set()
    return details, is_failing


def _answer(
    server: Endpoint, client: openai.OpenAI, task: GenerationTask
) -> GeneratedText | GenerationFailure | UnansweredRequest:
    began_at = perf_counter()
    answer = server.answer(
        lambda: _send(client, task),
        lambda body: text_of(task.response_key, body, elapsed_s=perf_counter() - began_at),
    )
    if isinstance(answer, UnansweredRequest) and answer.reason == "rejected":
        return GenerationFailure(task.response_key, "rejected", answer.detail)
    return answer


def _send(client: openai.OpenAI, task: GenerationTask) -> bytes:
    """Send a task, as a chat or as plain text; return the body."""
    decoding = _decoding_options(task)
    if task.options.is_chat:
        turn: ChatCompletionUserMessageParam = {"role": "user", "content": task.prompt_text}
        chats = client.chat.completions.with_raw_response
        return chats.create(messages=[turn], **decoding).content
    return client.completions.with_raw_response.create(prompt=task.prompt_text, **decoding).content


def _decoding_options(task: GenerationTask) -> _DecodingOptions:
    """Return the decoding options; those that greedy decoding ignores are left out."""
    entrant, options = task.entrant, task.options
    is_sampled = entrant.temperature is not None
    return _DecodingOptions(
        model=entrant.weights,
        max_tokens=entrant.max_new_tokens,
        temperature=entrant.temperature or 0.0,
        seed=task.seed if is_sampled else openai.omit,
        stop=list(options.stop) or openai.omit,
        top_p=options.top_p if is_sampled and options.top_p < 1 else openai.omit,
    )
