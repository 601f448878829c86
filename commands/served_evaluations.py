"""What evaluations ask of entrants behind endpoints, and what they took."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from commands.evaluate import PlannedEvaluation
from commands.evaluations.evaluation import Evaluation
from commands.evaluations.faults import blaming
from commands.evaluations.rollout import RolloutEvaluation
from commands.evaluations.sample import Sample
from commands.served_cost import Request, Used
from ledger.events.evaluations import AnswerObserved, SampleObserved
from ledger.events.registration import Entrant, Reference
from ledger.events.values import Usage
from projections.evaluations.state import Evaluations, SampleKey


class _Owed(NamedTuple):
    evaluation: Evaluation
    entrant: Entrant  # with the decoding that is asked for
    sample: Sample


def owed_requests(
    known: Evaluations, planned: Iterable[PlannedEvaluation], *, limit: int | None = None
) -> tuple[Request, ...]:
    """Return the prompts that plans put to endpoints and the ledger lacks.

    Entrants that are the same but for what an evaluation overrules share a run: it is asked once.

    Args:
        known: What is on the ledger.
        planned: What is to be observed, in order.
        limit: Of so many samples at most, those that put nothing to an endpoint included.
    """
    owed = {key: each for plan in planned for key, each in _owed(known, plan)}
    asked = (_request(each) for each in islice(owed.values(), limit))
    return tuple(request for request in asked if request is not None)


def _owed(known: Evaluations, planned: PlannedEvaluation) -> Iterator[tuple[SampleKey, _Owed]]:
    evaluation, inference, terms, plan, samples = planned
    entrant, owed = evaluation.configured(inference, terms), known.run(plan).owed
    for sample in samples:
        key = SampleKey(plan.run_key, sample.item, sample.number)
        if key in owed:
            yield key, _Owed(evaluation, entrant, sample)


def _request(owed: _Owed) -> Request | None:
    """Return what a sample puts to an endpoint; only rollouts put anything."""
    evaluation, entrant, sample = owed
    if entrant.loader != "endpoint" or not isinstance(evaluation, RolloutEvaluation):
        return None
    with blaming(evaluation.name, f"getting {sample.label}"):
        prompt_text, _ = evaluation.get(sample.index)
    return Request(entrant, prompt_text)


def answers_used(known: Evaluations, registered: Mapping[Reference, Entrant]) -> Iterator[Used]:
    """Yield what the answers on record took to all that was ever planned, each once."""
    makers = {key: registered[who] for key, who in known.who.items() if who in registered}
    for key, fate in known.fates.items():
        match fate:
            case SampleObserved(observation=AnswerObserved() as answer) if key.run_key in makers:
                usage = Usage(answer.n_prompt_tokens, answer.n_generated_tokens)
                yield Used(makers[key.run_key], usage)
            case _:
                continue
