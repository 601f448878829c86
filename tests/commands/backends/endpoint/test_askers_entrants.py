"""Entrants behind a server, through the real client and a server on loopback."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from commands.backends.endpoint.server import Endpoint
from commands.decisions.recorder import EvaluationRecorder, Recorder
from commands.entrants.endpoint_generator import EndpointGenerator
from commands.entrants.generate import WantedResponses, options_of
from commands.entrants.session import generate_with_consent
from commands.errors import LeftUnanswered, NothingReadable, ProviderError
from commands.evaluating.evaluate import evaluate_all, plan_evaluation
from commands.evaluating.samples import Inference
from commands.ports import (
    Billing,
    Console,
    GeneratedText,
    GenerationFailure,
    GenerationOptions,
    GenerationTask,
    Generator,
    no_progress,
)
from commands.settings.sections import EvaluationOptions
from commands.spending.budget import SpendingOptions
from commands.spending.pricing import PriceBook
from ledger.events.money import Usage
from ledger.events.registration import Entrant, EntrantOptions
from ledger.events.requests import RequestsSettled
from ledger.identity import EntrantId
from ledger.store import Ledger
from projections.evaluations.state import Evaluations
from tests.providers.openai import MODEL, FakeOpenAI, Fault, Json, Said
from tests.support.builders.commands import open_tournament, types_of
from tests.support.builders.endpoints import responder_of, unlimited
from tests.support.builders.evaluating import Capitals
from tests.support.builders.events import STREAM, entrant, key, opened, prompt
from tests.support.contracts import GeneratorContract
from tests.support.scripted import ScriptedBackends


class Rivers(Capitals):
    """Another evaluation."""

    name = "rivers"


def aborted(body: Json) -> Said:
    """Fail on each prompt that has an x in it, whenever it comes."""
    return Said("y", finish_reason="abort" if "x" in str(body["messages"]) else "stop")


def evaluate(
    ledger: Ledger, url: str, evaluations: Sequence[Capitals], limit: int | None = None
) -> Evaluations:
    """Evaluate in chunks of ten, and return what is known when that is over."""
    served = generator(url)
    inference = Inference(hosted(), lambda: served, None)
    for evaluation in evaluations:
        evaluation.chunk_size = 10
    planned = [plan_evaluation(each, inference, EvaluationOptions()) for each in evaluations]
    evaluate_all(EvaluationRecorder(ledger, STREAM), planned, on_progress=no_progress, limit=limit)
    return EvaluationRecorder(ledger, STREAM).state


def items(n: int, word: str, bad: Sequence[int] = ()) -> list[tuple[str, str]]:
    """Return items, of which the server fails on some."""
    return [(f"{'x' if each in bad else word} {each}?", "y") for each in range(n)]


def test_a_prompt_without_an_answer_leaves_later_chunks_and_evaluations_alone(
    ledger: Ledger,
) -> None:
    """It may be the same one at every run, and thousands of samples would wait behind it."""
    asked = [Capitals(*items(21, "a", bad=(0, 11))), Rivers(*items(2, "b"))]

    with FakeOpenAI(aborted) as fake, pytest.raises(LeftUnanswered) as caught:
        evaluate(ledger, fake.url, asked)

    lost = f"2 requests to entrant 'base' at {fake.url} got no answer, first error: "
    assert str(caught.value).startswith(lost)
    runs = EvaluationRecorder(ledger, STREAM).state.runs
    assert [len(run.missing) for run in runs] == [2, 0]


def test_a_server_that_fails_altogether_is_left_alone_at_once(ledger: Ledger) -> None:
    """Each chunk of each evaluation would try it again."""
    asked = [Capitals(*items(30, "x")), Rivers(*items(5, "b"))]

    with FakeOpenAI(aborted) as fake, pytest.raises(ProviderError, match="got no answer"):
        evaluate(ledger, fake.url, asked)

    assert len(fake.traffic.asked) == 10
    [run] = EvaluationRecorder(ledger, STREAM).state.runs
    assert len(run.missing) == 30


def test_a_server_that_rejects_everything_has_no_sample_given_up(ledger: Ledger) -> None:
    """An unscorable sample is final, and the server is mended in a minute."""
    with FakeOpenAI() as fake:
        fake.inject(*[Fault("bad_request")] * 30)
        with pytest.raises(ProviderError, match=r"rejected \d+ requests in a row"):
            evaluate(ledger, fake.url, [Capitals(*items(30, "a"))])

    [run] = EvaluationRecorder(ledger, STREAM).state.runs
    assert (len(run.missing), len(run.unscorable)) == (30, 0)


def test_prompts_that_are_all_too_long_are_no_fault_of_the_server(ledger: Ledger) -> None:
    """The last chunk may be of prompts that are all too long."""
    with FakeOpenAI() as fake:
        fake.inject(*[None] * 10, *[Fault("too long")] * 10)
        evaluate(ledger, fake.url, [Capitals(*items(20, "a"))])

    [run] = EvaluationRecorder(ledger, STREAM).state.runs
    assert (len(run.missing), len(run.unscorable)) == (0, 10)


def test_what_is_asked_in_vain_counts_for_a_limit(ledger: Ledger) -> None:
    """Somebody agreed to pay for so many requests, and not for others in their place."""
    asked = [Capitals(*items(3, "a", bad=(1,))), Rivers(*items(5, "b"))]

    with FakeOpenAI(aborted) as fake, pytest.raises(LeftUnanswered):
        evaluate(ledger, fake.url, asked, limit=5)

    assert len(fake.traffic.asked) == 5


@pytest.mark.usefixtures("at_once")
def test_a_server_that_is_gone_ends_it_at_once(ledger: Ledger) -> None:
    """There is nobody to have a turn."""
    with FakeOpenAI(aborted) as fake:
        url = fake.url

    with pytest.raises(ProviderError, match="start the server") as caught:
        evaluate(ledger, url, [Capitals(*items(3, "a")), Rivers(*items(5, "b"))])

    assert not isinstance(caught.value, LeftUnanswered)
    assert len(EvaluationRecorder(ledger, STREAM).state.plans) == 1


PLAIN = GenerationOptions()
Results = list[GeneratedText | GenerationFailure]


@pytest.fixture
def fake() -> Iterator[FakeOpenAI]:
    """Give a server on which nothing goes wrong."""
    with FakeOpenAI() as fake:
        yield fake


def hosted(entrant_id: str = "base", **fields: object) -> Entrant:
    """Return an entrant that the server serves."""
    return entrant(entrant_id, loader="endpoint", weights=MODEL, dtype=None, **fields)


def task(
    n: int = 0, *, options: GenerationOptions = PLAIN, of: Entrant | None = None
) -> GenerationTask:
    """Return a task of its own."""
    return GenerationTask(key(str(n)), of or hosted(), f"Question {n}?", seed=n, options=options)


def tasks(n: int) -> list[GenerationTask]:
    """Return different tasks."""
    return [task(each) for each in range(n)]


def generator(
    url: str, billing: Billing | None = None, *, n_at_a_time: int = 1
) -> EndpointGenerator:
    """Return the generator of two entrants on a server that is asked nothing again."""
    endpoint = Endpoint(url, "entrant", None, n_at_a_time=n_at_a_time)
    served = {EntrantId("base"): endpoint, EntrantId("tuned"): endpoint}
    return EndpointGenerator(responder_of(served), billing or unlimited())


def results_of(url: str, asked: Sequence[GenerationTask], *, n_at_a_time: int = 1) -> Results:
    """Return what comes of tasks."""
    batches = generator(url, n_at_a_time=n_at_a_time).generate(asked)
    return [result for batch in batches for result in batch]


class TestEndpointGenerator(GeneratorContract):
    """The generator on a server that answers everything, several requests at a time."""

    @pytest.fixture(autouse=True)
    def _server(self, fake: FakeOpenAI) -> None:
        fake.traffic.models = None  # the contract's entrants have weights of any name
        self._url = fake.url

    def make(self) -> Generator:
        """Return a generator that asks three at a time."""
        return generator(self._url, n_at_a_time=3)


def test_examples_are_sent_as_turns_and_a_begun_answer_goes_on(fake: FakeOpenAI) -> None:
    """By the two keys that vLLM and SGLang have for it."""
    turns = (("user", "1?"), ("assistant", "2"), ("user", "3?"))

    for messages in (turns, (*turns, ("assistant", "It is"))):
        results_of(fake.url, [replace(task(options=GenerationOptions()), messages=messages)])

    asked, begun = fake.traffic.asked
    assert asked["messages"] == [{"role": role, "content": said} for role, said in turns]
    assert "continue_final_message" not in asked
    assert begun.items() >= {"continue_final_message": True, "add_generation_prompt": False}.items()
    assert '"content": "It is"' in json.dumps(begun["messages"])


def test_a_text_that_is_no_chat_is_completed(fake: FakeOpenAI) -> None:
    """A base model's few shots must not be wrapped into a user's turn."""
    (result,) = results_of(fake.url, [task(options=GenerationOptions(is_chat=False))])

    assert isinstance(result, GeneratedText)
    assert result.text == "Both are plain.\nVERDICT: A"
    assert fake.traffic.asked[0]["prompt"] == "Question 0?"
    assert "messages" not in fake.traffic.asked[0]


@pytest.mark.parametrize(
    ("said", "text", "finish_reason"),
    [
        (Said("Paris."), "Paris.", "stop"),
        (Said("Par", finish_reason="length"), "Par", "length"),
        (Said("", finish_reason="length"), "", "length"),
        (Said(None, refusal="I cannot."), "I cannot.", "stop"),
    ],
)
def test_an_answer_is_kept_with_how_it_ended(said: Said, text: str, finish_reason: str) -> None:
    """What a model says instead of an answer is its answer, wherever the server puts it."""
    with FakeOpenAI(lambda _: said) as fake:
        (result,) = results_of(fake.url, [task()])

    assert isinstance(result, GeneratedText)
    assert (result.text, result.finish_reason) == (text, finish_reason)
    assert result.n_prompt_tokens == len(json.dumps(fake.traffic.asked[0]["messages"])) // 4
    assert result.n_generated_tokens == len(said.content or "") // 4
    assert (result.prompt_ids, result.generated_ids) == ((), ())
    assert (result.elapsed_s or 0) > 0


def test_what_a_filter_kept_back_is_no_answer_and_is_counted() -> None:
    """Half of one would be judged as if it had stopped there; whoever ran it sends a bill."""
    with FakeOpenAI(lambda _: Said("To make", finish_reason="content_filter")) as fake:
        (result,) = results_of(fake.url, [task()])

    assert isinstance(result, GenerationFailure)
    assert (result.response_key, result.reason) == (key("0"), "refused")
    n_prompt = len(json.dumps(fake.traffic.asked[0]["messages"])) // 4
    assert result.usage == Usage(n_input=n_prompt, n_output=1)


def test_a_request_without_an_answer_is_told_after_the_others_are_answered(
    fake: FakeOpenAI,
) -> None:
    """A prompt on which a server fails each time must not be in the way of all behind it."""
    fake.inject(Fault("server_error"))
    asked = [*tasks(3), task(3, of=hosted("tuned"))]
    kept: Results = []

    with pytest.raises(
        LeftUnanswered, match=r"1 request to entrant 'base' .*HTTP 500: told to fail"
    ):
        kept.extend(each for batch in generator(fake.url).generate(asked) for each in batch)

    assert [each.response_key for each in kept] == [key(str(n)) for n in range(1, 4)]


def test_an_entrant_that_says_nothing_is_left_once_what_is_under_way_is_recorded(
    recorder: Recorder, ledger: Ledger
) -> None:
    """A reasoning model that thinks up to its limit is paid for in vain; the others go on."""
    bank = [prompt(f"p{number}") for number in range(22)]
    roster = [hosted(), hosted("tuned", temperature=0.5)]
    recorder.record(open_tournament(opened(entrants=roster, prompts=bank)))

    def say(body: Json) -> Said:
        return Said("Aspirin.") if body["temperature"] else Said(None, finish_reason="length")

    with FakeOpenAI(say) as fake, pytest.raises(NothingReadable, match="raise max_new_tokens; run"):
        generate_with_consent(
            recorder,
            WantedResponses([each.prompt_id for each in bank]),
            ScriptedBackends(lambda billing: generator(fake.url, billing, n_at_a_time=4)),
            PriceBook(None, "off", 0),
            SpendingOptions(),
            Console(print, None, no_progress),
        )

    texts = [each.text for each in recorder.state.responses.values()]
    assert texts.count("Aspirin.") == 22
    assert 16 <= texts.count("") < 22
    assert len(fake.traffic.asked) == types_of(ledger).count("ResponseGenerated")
    assert not recorder.state.requests.under_way


def test_what_becomes_of_requests_is_recorded_by_its_billing(recorder: Recorder) -> None:
    """They are recorded before they are sent, and each ends once."""
    under_way: list[int] = []

    def say(body: Json) -> Said:
        under_way.append(len(recorder.state.requests.under_way))
        withheld = "Question 2?" in str(body["messages"])
        return Said("No.", finish_reason="content_filter" if withheld else "stop")

    recorder.record(open_tournament(opened(entrants=[hosted(), hosted("tuned")])))
    with FakeOpenAI(say) as fake:
        fake.inject(None, Fault("server_error"), None, Fault("too_large"))
        answers = generator(fake.url, unlimited(recorder)).generate(tasks(4))
        with pytest.raises(LeftUnanswered):
            list(answers)

    fates = {
        charge.request: (charge.fate, charge.usage is not None)
        for each in recorder.ledger.read()
        if isinstance(each.event, RequestsSettled)
        for charge in each.event.charges
    }
    assert under_way == [1, 1, 1, 1]
    assert fates == {
        key("0"): ("answered", True),
        key("1"): ("perhaps billed", False),
        key("2"): ("answered", True),
        key("3"): ("refused", False),
    }
    assert not recorder.state.requests.under_way


def test_ctrl_c_records_the_answers_under_way_and_asks_no_more(
    recorder: Recorder, ctrl_c: Callable[[], None]
) -> None:
    """They are paid for; the others are owed still."""

    def say(_: Json) -> Said:
        ctrl_c()
        return Said()

    recorder.record(open_tournament(opened(entrants=[hosted(), hosted("tuned")])))
    with FakeOpenAI(say) as fake:
        answers = generator(fake.url, unlimited(recorder)).generate(tasks(4))
        first = next(answers)
        with pytest.raises(KeyboardInterrupt):
            next(answers)

    assert [each.response_key for each in first] == [key("0")]
    assert len(fake.traffic.asked) == 1
    assert (recorder.state.requests.n_settled, len(recorder.state.requests.under_way)) == (1, 0)


def sent(options: EntrantOptions, temperature: float | None = 0.5) -> Json:
    """Return the request that an entrant with these settings makes."""
    chosen = hosted(temperature=temperature, options=options)
    with FakeOpenAI() as fake:
        results_of(fake.url, [GenerationTask(key("r"), chosen, "a dose", 7, options_of(chosen))])
        [asked] = fake.traffic.asked
    return asked


def test_each_setting_reaches_the_server() -> None:
    """By the names that vLLM and SGLang have for them."""
    body = sent(
        EntrantOptions(
            system="be short",
            template_arguments='{"enable_thinking":false}',
            prompt_format="Q: {prompt}",
            stop=("X",),
            top_p=0.9,
            top_k=5,
            min_p=0.1,
            repetition_penalty=1.2,
            extra_body='{"logit_bias":{"5":1}}',
        )
    )

    assert body["messages"] == [
        {"role": "system", "content": "be short"},
        {"role": "user", "content": "Q: a dose"},
    ]
    rest = {name: value for name, value in body.items() if name != "messages"}
    assert rest == {
        "model": MODEL,
        "max_tokens": 32,
        "temperature": 0.5,
        "seed": 7,
        "top_p": 0.9,
        "top_k": 5,
        "min_p": 0.1,
        "repetition_penalty": 1.2,
        "stop": ["X"],
        "chat_template_kwargs": {"enable_thinking": False},
        "logit_bias": {"5": 1},
    }


def test_a_greedy_entrant_is_asked_for_no_more_than_that() -> None:
    """A server may refuse what it does not know, and nothing is drawn."""
    assert sent(EntrantOptions(top_p=0.5), temperature=None) == {
        "model": MODEL,
        "messages": [{"role": "user", "content": "a dose"}],
        "max_tokens": 32,
        "temperature": 0.0,
    }
