"""Answer prompts with what a server serves, one that speaks OpenAI's API as vLLM and SGLang do."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Event
from time import perf_counter
from typing import NamedTuple, TypedDict

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
    """Where an entrant is served, and how many requests at a time are put there."""

    server: Endpoint
    n_at_a_time: int


class _UnansweredTasks(NamedTuple):
    """What a server said to requests that it left unanswered, and whether it fails altogether."""

    details: list[str]
    is_failing: bool


class _DecodingOptions(TypedDict):
    model: str
    max_tokens: int
    temperature: float
    seed: int | openai.Omit
    stop: list[str] | openai.Omit
    top_p: float | openai.Omit


class EndpointGenerator:
    """Answers tasks entrant by entrant, each by a request of its own.

    The server renders the chat, counts the tokens and ends the answer. What it refuses, a prompt
    that is too long for it as well, has no answer; no prompt is cut.
    """

    def __init__(self, served: Mapping[EntrantId, EntrantEndpoint]) -> None:
        """Ask these servers."""
        self._served = served
        self._trials: dict[tuple[Entrant, GenerationOptions], ServerProbe] = {}

    def generate(
        self, tasks: Sequence[GenerationTask]
    ) -> Iterator[tuple[GeneratedText | GenerationFailure, ...]]:
        """Yield answers as they come, and raise at the end if there are tasks without one.

        A prompt on which a server fails is in nobody's way. A fault that is everybody's ends it
        at once; answers that are under way then still come.

        Raises:
            NoCredentials: A server wants a key, or another.
            ConfigurationError: A server does not serve the model.
            SpendLimitReached: Nothing is left to pay the server with.
            ProviderError: A server cannot be reached, is none of its kind, rejects whatever it is
                asked, or fails so often that it was asked no more.
            LeftUnanswered: Servers answer, but for some of the tasks.
        """
        by_entrant: dict[EntrantId, list[GenerationTask]] = {}
        for task in tasks:
            by_entrant.setdefault(task.entrant.entrant_id, []).append(task)
        details: dict[str, list[str]] = {}
        is_failing = False
        for entrant_id, its_tasks in by_entrant.items():
            served = self._served[entrant_id]
            how = its_tasks[0].entrant, its_tasks[0].options  # a server may take one, not another
            trial = self._trials.setdefault(how, ServerProbe(served.server))
            with served.server.client() as client:
                left = yield from _answers(served, client, its_tasks, trial)
            if left.details:
                details[f"entrant {entrant_id!r} at {served.server.base_url}"] = left.details
            is_failing |= left.is_failing
        if details:
            lacking = LeftUnanswered(details)
            raise ProviderError(lacking.why) if is_failing else lacking


def _answers(
    served: EntrantEndpoint,
    client: openai.OpenAI,
    tasks: Sequence[GenerationTask],
    trial: ServerProbe,
) -> Generator[tuple[GeneratedText | GenerationFailure], None, _UnansweredTasks]:
    """Yield what is answered, and return what was not; a server that fails is left alone."""
    details: list[str] = []
    n_in_a_row, is_failing, stops = 0, False, Event()
    ask = partial(_answer, served.server, client)
    for answer in trial.ask_all(tasks, ask, n_at_a_time=served.n_at_a_time, stops=stops):
        if isinstance(answer, UnansweredRequest):
            details.append(answer.detail)
            n_in_a_row += 1
        else:
            n_in_a_row = 0
            yield (answer,)
        if n_in_a_row == N_PROBES:
            is_failing = True
            stops.set()
    return _UnansweredTasks(details, is_failing)


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
    """Put a task, as a user's turn or as it is."""
    decoding = _decoding_options(task)
    if task.options.is_chat:
        turn: ChatCompletionUserMessageParam = {"role": "user", "content": task.prompt_text}
        chats = client.chat.completions.with_raw_response
        return chats.create(messages=[turn], **decoding).content
    return client.completions.with_raw_response.create(prompt=task.prompt_text, **decoding).content


def _decoding_options(task: GenerationTask) -> _DecodingOptions:
    """Say how to decode; what greedy decoding does not use is left out: servers may lack it."""
    entrant, options = task.entrant, task.options
    is_drawn = entrant.temperature is not None
    return _DecodingOptions(
        model=entrant.weights,
        max_tokens=entrant.max_new_tokens,
        temperature=entrant.temperature or 0.0,
        seed=task.seed if is_drawn else openai.omit,
        stop=list(options.stop) or openai.omit,
        top_p=options.top_p if is_drawn and options.top_p < 1 else openai.omit,
    )
