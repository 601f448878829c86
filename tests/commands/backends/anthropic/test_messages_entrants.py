"""Entrants that are Anthropic's models, through the SDK and a server that fails as the real one."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from anthropic import Anthropic

from commands.backends.anthropic.batches import entrant_batches
from commands.backends.anthropic.messages import AnthropicResponder
from commands.entrants.endpoint_generator import EndpointGenerator
from commands.entrants.generate import options_of
from commands.errors import ConfigurationError
from commands.ports import GeneratedText, GenerationFailure, GenerationOptions, GenerationTask
from ledger.events.money import Usage
from ledger.events.registration import Entrant, EntrantOptions
from tests.providers.anthropic.messages import Reply
from tests.providers.anthropic.prompt import Params
from tests.providers.anthropic.requests import client_of
from tests.providers.anthropic.server import FakeAnthropic
from tests.support.builders.endpoints import unlimited
from tests.support.builders.events import entrant, key

MODEL = "claude-opus-5-5"


def hosted(**fields: object) -> Entrant:
    """Return an entrant at Anthropic."""
    given = {"loader": "endpoint", "weights": MODEL, "dtype": None, "max_new_tokens": 4_000}
    return entrant("opus", **{**given, **fields})


def task(text: str = "Why?", by: Entrant | None = None, **fields: object) -> GenerationTask:
    """Return a prompt to an entrant."""
    asked = by or hosted()
    made = GenerationTask(key(text), asked, text, seed=7, options=options_of(asked))
    return replace(made, **fields)  # type: ignore[arg-type]  # as each test needs


@pytest.fixture
def asked() -> list[Params]:
    """Give what the model was asked."""
    return []


@pytest.fixture
def fake(asked: list[Params]) -> Iterator[FakeAnthropic]:
    """Give Anthropic, whose model says what it was asked last."""

    def answering(params: Params) -> Reply:
        asked.append(params)
        return Reply(f"You said {params.user}", *params.stop_sequences[:1])

    with FakeAnthropic(answering=answering) as fake:
        yield fake


@pytest.fixture
def client(fake: FakeAnthropic) -> Iterator[Anthropic]:
    """Give the SDK's client."""
    with client_of(fake.url) as client:
        yield client


def answers(
    client: Anthropic, tasks: Sequence[GenerationTask]
) -> list[GeneratedText | GenerationFailure]:
    """Return what an entrant answers."""
    responder = AnthropicResponder(client, tasks[0].entrant, n_at_a_time=4)
    generator = EndpointGenerator(lambda _entrant, _refused: responder, unlimited())
    return [result for group in generator.generate(tasks) for result in group]


def test_a_task_is_asked_in_a_batch_as_it_is_alone(
    client: Anthropic, fake: FakeAnthropic, asked: list[Params]
) -> None:
    """The response has one key, so how it is asked must not change it."""
    chosen = EntrantOptions(
        system="Be brief.", stop=("END",), extra_body='{"output_config": {"effort": "low"}}'
    )
    wanted = task(by=hosted(options=chosen))
    (alone,) = answers(client, [wanted])
    batches = entrant_batches(client)
    name = batches.create([wanted]).provider_batch_id
    fake.end_batches()

    (in_batch,) = batches.results(name)

    assert asked[0] == asked[1]
    assert isinstance(alone, GeneratedText)
    assert in_batch == replace(alone, elapsed_s=None)


def test_a_chat_is_sent_as_the_api_takes_it(client: Anthropic, asked: list[Params]) -> None:
    """The system's text apart, the turns in order; greedy decoding sends no sampling."""
    by = hosted(options=EntrantOptions(system="Be brief.", stop=("END",)))
    turns = (("system", "Be brief."), ("user", "One?"), ("assistant", "1"), ("user", "Two?"))

    plain, talk = answers(client, [task("Why?", by), task("Two?", by, messages=turns)])

    assert {plain.text, talk.text} == {"You said Why?", "You said Two?"}  # type: ignore[union-attr]
    first, second = sorted(asked, key=lambda each: len(each.messages))
    assert first.system_text == second.system_text == "Be brief."
    assert [(turn.role, turn.content) for turn in second.messages] == [*turns[1:]]
    assert first.max_tokens == by.max_new_tokens
    assert first.stop_sequences == ("END",)


def test_an_answer_says_how_it_ended_and_what_it_took(
    client: Anthropic, fake: FakeAnthropic
) -> None:
    """In the words that every entrant's responses have."""
    [whole] = answers(client, [task()])
    [cut] = answers(client, [task("Why " * 200, hosted(max_new_tokens=3))])

    assert isinstance(whole, GeneratedText)
    assert isinstance(cut, GeneratedText)
    assert (whole.finish_reason, cut.finish_reason) == ("stop", "length")
    billed = fake.bill().paid
    assert {(each.usage.n_input, each.usage.n_output) for each in billed} == {
        (each.n_prompt_tokens, each.n_generated_tokens) for each in (whole, cut)
    }


def test_a_refusal_is_no_response() -> None:
    """It was paid for, and says nothing that could be compared."""
    with (
        FakeAnthropic(answering=lambda _: Reply("", "refusal")) as fake,
        client_of(fake.url) as client,
    ):
        [refused] = answers(client, [task()])

    assert isinstance(refused, GenerationFailure)
    assert refused.reason == "refused"
    assert isinstance(refused.usage, Usage)


def test_what_the_model_does_not_take_is_said_of_the_entrant(client: Anthropic) -> None:
    """Another prompt would fail alike."""
    huge = EntrantOptions(extra_body='{"output_config": {"effort": "huge"}}')

    with pytest.raises(ConfigurationError, match="effort"):
        answers(client, [task(by=hosted(options=huge))])


def test_a_plain_text_is_rejected_unsent(client: Anthropic, fake: FakeAnthropic) -> None:
    """As an evaluation may ask; it says what to do."""
    responder = AnthropicResponder(client, hosted(), n_at_a_time=1)

    answer = responder.ask(task(options=GenerationOptions(is_chat=False)))

    assert (answer.reason, answer.fate) == ("rejected", "not sent")  # type: ignore[union-attr]
    assert not fake.bill().calls
