"""Judges and entrants behind servers with OpenAI's API, asked as a command asks them."""

from collections.abc import Callable, Mapping
from functools import partial

from commands.backends.endpoint.askers import EndpointJudge, EndpointResponder
from commands.backends.endpoint.server import Endpoint
from commands.decisions.recorder import Recorder
from commands.entrants.endpoint_generator import EndpointGenerator
from commands.entrants.generate import generate_missing
from commands.judging.judge import JudgeTask, judge_open
from commands.ports import ResponderOf, Tell, no_progress
from commands.spending.endpoints import LedgerBilling
from commands.spending.price_table import PriceTable, price_table
from ledger.errors import TourneyError
from ledger.identity import EntrantId
from ledger.store import Ledger
from tests.providers.openai import MODEL
from tests.support.builders.commands import open_tournament, record_answers
from tests.support.builders.events import STREAM, entrant, judge, key, opened, prompt
from tests.support.builders.money import FlatRate


def responder_of(served: Mapping[EntrantId, Endpoint]) -> ResponderOf:
    """Return who answers for an entrant, given who serves whom."""
    return lambda entrant, refused: EndpointResponder(entrant, served[entrant.entrant_id], refused)


def unlimited(recorder: Recorder | None = None) -> LedgerBilling:
    """Return a billing that allows every request, by default in a ledger of its own."""
    recorder = recorder or Recorder(Ledger.in_memory(), STREAM)
    return LedgerBilling(recorder, price_table(None), None, lambda _: None)


def judge_at(
    url: str,
    ledger: Ledger,
    *,
    n_prompts: int = 4,
    n_at_a_time: int = 1,
    max_usd: float | None = None,
    **parameters: str | float,
) -> Recorder:
    """Judge pairs of responses that are on record, at a dollar a query."""
    given = {"max_tokens": 64.0, **parameters}
    asked = judge("steady", provider="endpoint", model=MODEL, parameters=(*given.items(),))
    prompts = [prompt(f"p{each}") for each in range(n_prompts)]
    recorder = record_answers(Recorder(ledger, STREAM), opened(prompts=prompts, judges=[asked]))
    wanted = [each.prompt_id for each in prompts]
    task = JudgeTask(asked, wanted, 0, FlatRate(1.0), max_usd=max_usd)
    port = EndpointJudge(asked, Endpoint(url, "judge", None, n_at_a_time=n_at_a_time))
    judge_open(recorder, task, lambda *_: port, on_progress=no_progress)
    return recorder


def generate_at(
    url: str,
    ledger: Ledger,
    tell: Tell,
    *,
    n_prompts: int = 4,
    n_at_a_time: int = 1,
    prices: PriceTable | None = None,
    max_usd: float | None = None,
    model: str = MODEL,
    **fields: object,
) -> Recorder:
    """Generate an entrant's responses."""
    given = {"weights": model, "weights_digest": key(model), "dtype": None, **fields}
    hosted = entrant("base", loader="endpoint", **given)
    prompts = [prompt(f"p{each}") for each in range(n_prompts)]
    recorder = Recorder(ledger, STREAM)
    recorder.record(open_tournament(opened(prompts=prompts, entrants=[hosted])))
    billing = LedgerBilling(recorder, prices or price_table(None), max_usd, tell)
    served = {EntrantId("base"): Endpoint(url, "entrant", None, n_at_a_time=n_at_a_time)}
    make = partial(EndpointGenerator, responder_of(served), billing, tell)
    wanted = [each.prompt_id for each in prompts]
    generate_missing(recorder, make, wanted, on_progress=no_progress)
    return recorder


def errors_of(n_times: int, run: Callable[[], object]) -> list[str]:
    """Run a command as often as a patient user; return the errors."""
    errors = []
    for _ in range(n_times):
        try:
            run()
        except TourneyError as error:
            errors.append(f"{type(error).__name__}: {error}")
    return errors
