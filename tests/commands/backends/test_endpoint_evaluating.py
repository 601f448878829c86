"""Evaluations at a server: what it leaves unanswered is in nobody's way."""

from collections.abc import Sequence

import pytest

from commands.backends.endpoint.generator import EndpointGenerator, EntrantEndpoint
from commands.backends.endpoint.server import N_PROBES, Endpoint
from commands.decisions.recorder import EvaluationRecorder
from commands.errors import LeftUnanswered, ProviderError
from commands.evaluating.evaluate import evaluate_all, plan_evaluation
from commands.evaluating.samples import Inference
from commands.ports import no_progress
from commands.settings.sections import EvaluationOptions
from ledger.identity import EntrantId
from ledger.store import Ledger
from projections.evaluations.state import Evaluations
from tests.builders import STREAM, entrant
from tests.commands.evaluations.examples import Capitals
from tests.openai_api.server import MODEL, FakeOpenAI, Fault, Json, Said

BASE = entrant("base", loader="endpoint", weights=MODEL, dtype=None)


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
    served = EntrantEndpoint(Endpoint(url, "entrant", None, max_retries=0), n_at_a_time=1)
    generator = EndpointGenerator({EntrantId("base"): served})
    inference = Inference(BASE, lambda: generator, None)
    planned = [
        plan_evaluation(each, inference, EvaluationOptions(chunk_size=10)) for each in evaluations
    ]
    evaluate_all(EvaluationRecorder(ledger, STREAM), planned, on_progress=no_progress, limit=limit)
    return EvaluationRecorder(ledger, STREAM).state


def items(n: int, word: str, bad: Sequence[int] = ()) -> list[tuple[str, str]]:
    """Return items, of which the server fails on some."""
    return [(f"{'x' if each in bad else word} {each}?", "y") for each in range(n)]


def test_a_prompt_without_an_answer_leaves_later_chunks_and_evaluations_alone(
    ledger: Ledger,
) -> None:
    """It may be the same one at every run, and thousands of samples would wait behind it."""
    asked = [Capitals(*items(30, "a", bad=(0, 11))), Rivers(*items(5, "b"))]

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

    assert N_PROBES <= len(fake.traffic.asked) < 10
    [run] = EvaluationRecorder(ledger, STREAM).state.runs
    assert len(run.missing) == 30


def test_a_server_that_rejects_everything_has_no_sample_given_up(ledger: Ledger) -> None:
    """An unscorable sample is final, and the server is mended in a minute."""
    with FakeOpenAI() as fake:
        fake.inject(*[Fault("bad_request")] * 30)
        with pytest.raises(ProviderError, match="none of the first 8 requests"):
            evaluate(ledger, fake.url, [Capitals(*items(30, "a"))])

    [run] = EvaluationRecorder(ledger, STREAM).state.runs
    assert (len(run.missing), len(run.unscorable)) == (30, 0)


def test_a_server_that_took_a_chunk_is_not_tried_again(ledger: Ledger) -> None:
    """The last chunk may be of prompts that are all too long."""
    with FakeOpenAI() as fake:
        fake.inject(*[Fault("slow")] * 10, *[Fault("bad_request")] * 10)
        evaluate(ledger, fake.url, [Capitals(*items(20, "a"))])

    [run] = EvaluationRecorder(ledger, STREAM).state.runs
    assert (len(run.missing), len(run.unscorable)) == (0, 10)


def test_what_is_asked_in_vain_counts_for_a_limit(ledger: Ledger) -> None:
    """Somebody agreed to pay for so many requests, and not for others in their place."""
    asked = [Capitals(*items(3, "a", bad=(1,))), Rivers(*items(5, "b"))]

    with FakeOpenAI(aborted) as fake, pytest.raises(LeftUnanswered):
        evaluate(ledger, fake.url, asked, limit=5)

    assert len(fake.traffic.asked) == 5


def test_a_server_that_is_gone_ends_it_at_once(ledger: Ledger) -> None:
    """There is nobody to have a turn."""
    with FakeOpenAI(aborted) as fake:
        url = fake.url

    with pytest.raises(ProviderError, match="start the server") as caught:
        evaluate(ledger, url, [Capitals(*items(3, "a")), Rivers(*items(5, "b"))])

    assert not isinstance(caught.value, LeftUnanswered)
    assert len(EvaluationRecorder(ledger, STREAM).state.plans) == 1
