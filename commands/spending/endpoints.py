"""The cost of endpoint entrants: of requests to come, and of answers on record."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import fsum
from typing import Final, NamedTuple

from commands.spending.price_table import PriceTable
from ledger.events.evaluations import AnswerObserved, SampleObserved
from ledger.events.money import Usage, cost_usd
from ledger.events.registration import Entrant, Reference, TournamentOpened
from ledger.events.responses import ResponseFailed, ResponseGenerated
from ledger.identity import Digest, EntrantId
from ledger.reader import LedgerReader
from ledger.recorded import Recorded
from projections.evaluations.state import EVALUATION_EVENTS, Evaluations, evaluations_of
from projections.fold import fold
from projections.tournament.estimate import BYTES_PER_TOKEN, FRAME_TOKENS, n_bytes
from projections.tournament.matches import planned_response
from projections.tournament.state import Tournament

RESPONSE_EVENTS: Final = frozenset({"TournamentOpened", "ResponseGenerated", "ResponseFailed"})
"""The types of events that tell the usage of responses."""


class Request(NamedTuple):
    """A prompt to send to an entrant."""

    entrant: Entrant
    prompt_text: str


class AnswerUsage(NamedTuple):
    """The tokens of one recorded answer, and the entrant that gave it."""

    entrant: Entrant
    usage: Usage


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


def endpoint_costs(requests: Iterable[Request], prices: PriceTable) -> tuple[EndpointCost, ...]:
    """Estimate the cost of endpoint entrants; weights on this machine cost nothing.

    The price is that of the model's name in the table. Every answer counts at its maximum length.
    """
    by_entrant: dict[Entrant, list[str]] = {}
    for entrant, prompt_text in requests:
        if entrant.loader == "endpoint":
            by_entrant.setdefault(entrant, []).append(prompt_text)
    return tuple(_cost(entrant, texts, prices) for entrant, texts in by_entrant.items())


def _cost(entrant: Entrant, texts: list[str], prices: PriceTable) -> EndpointCost:
    n_output = entrant.max_new_tokens
    likely = [Usage(round(n_bytes(text) / BYTES_PER_TOKEN), n_output) for text in texts]
    worst = [Usage(n_bytes(text) + FRAME_TOKENS, n_output) for text in texts]
    return EndpointCost(
        entrant_id=entrant.entrant_id,
        model=entrant.weights,
        n_requests=len(texts),
        n_input=sum(each.n_input for each in likely),
        n_output=sum(each.n_output for each in likely),
        expected_usd=_usd(entrant.weights, likely, prices),
        worst_usd=_usd(entrant.weights, worst, prices),
    )


def response_usage(state: Tournament, own: Iterable[Recorded]) -> Iterator[AnswerUsage]:
    """Yield the tokens of responses, and of answers that a server withheld, with their entrants.

    A response's key identifies its entrant, even if another one has the label now.

    Args:
        state: The tournament.
        own: Its own events of `RESPONSE_EVENTS`; another tournament paid for its own.
    """
    seeds: set[int] = set()
    makers: dict[Digest, Entrant] = {}
    for recorded in own:
        match recorded.event:
            case TournamentOpened(generation_seed=seed) as opening if seed not in seeds:
                seeds.add(seed)
                makers |= _entrants_by_response(replace(state, opening=opening))
            case ResponseGenerated() | ResponseFailed() as made:
                usage = _usage(made)
                if usage is not None and made.response_key in makers:
                    yield AnswerUsage(makers[made.response_key], usage)
            case _:
                continue


def _usage(made: ResponseGenerated | ResponseFailed) -> Usage | None:
    """Return the tokens of an answer; None: the server did not tell."""
    if isinstance(made, ResponseFailed):
        return made.usage
    n_prompt = made.n_prompt_tokens
    return None if n_prompt is None else Usage(n_prompt, made.n_generated_tokens)


def _entrants_by_response(state: Tournament) -> dict[Digest, Entrant]:
    """Return the entrant of each response key of every endpoint entrant ever registered."""
    served = [each for each in state.entrants.values() if each.loader == "endpoint"]
    asked = (
        planned_response(state, who, what) for who in served for what in state.prompts.values()
    )
    return {cell.response_key: cell.entrant for cell in asked}


def _usd(model: str, usages: Iterable[Usage], prices: PriceTable) -> float | None:
    priced = prices.of(model)
    if priced is None:
        return None
    return fsum(cost_usd(usage, priced.price(usage, in_batch=False)) for usage in usages)


class EndpointSpend(NamedTuple):
    """The tokens and the cost of one entrant's answers from one model."""

    entrant_id: EntrantId
    model: str  # the server's name for it
    n_answers: int  # to prompts of the bank and of evaluations
    n_input: int
    n_output: int
    usd: float | None  # None: the price is unknown
    price_table: str | None  # where the price is from


def endpoint_spend(used: Iterable[AnswerUsage], prices: PriceTable) -> tuple[EndpointSpend, ...]:
    """Add up tokens and cost by entrant and model; weights on this machine cost nothing."""
    groups: dict[tuple[EntrantId, str], list[AnswerUsage]] = {}
    for each in used:
        if each.entrant.loader == "endpoint":
            key = (each.entrant.entrant_id, each.entrant.weights)
            groups.setdefault(key, []).append(each)
    return tuple(_added_up(*key, group, prices) for key, group in sorted(groups.items()))


def _added_up(
    entrant_id: EntrantId, model: str, used: list[AnswerUsage], prices: PriceTable
) -> EndpointSpend:
    priced = prices.of(model)
    return EndpointSpend(
        entrant_id=entrant_id,
        model=model,
        n_answers=len(used),
        n_input=sum(each.usage.n_input for each in used),
        n_output=sum(each.usage.n_output for each in used),
        usd=_usd(model, (each.usage for each in used), prices),
        price_table=None if priced is None else priced.source.title,
    )


def evaluation_usage(
    known: Evaluations, registered: Mapping[Reference, Entrant]
) -> Iterator[AnswerUsage]:
    """Yield the tokens of all recorded evaluation answers, each once, whatever plan they are of."""
    makers = {key: registered[who] for key, who in known.who.items() if who in registered}
    for key, fate in known.fates.items():
        match fate:
            case SampleObserved(observation=AnswerObserved() as answer) if key.run_key in makers:
                usage = Usage(answer.n_prompt_tokens, answer.n_generated_tokens)
                yield AnswerUsage(makers[key.run_key], usage)
            case _:
                continue


def endpoint_usage(
    ledger: LedgerReader, state: Tournament, *, until: int | None = None
) -> tuple[AnswerUsage, ...]:
    """Return the tokens of a tournament's responses and evaluation answers, up to a position.

    Entrants that left the roster count, too. Other tournaments of the ledger do not.
    """
    read = partial(ledger.read, stream=state.stream, until=until)
    known = fold(evaluations_of(state.stream), read(types=EVALUATION_EVENTS))
    responses = response_usage(state, read(types=RESPONSE_EVENTS))
    return (*responses, *evaluation_usage(known, state.entrants))


def spent_at_endpoints(ledger: LedgerReader, state: Tournament, prices: PriceTable) -> float:
    """Return what the answers of endpoint entrants cost: responses and evaluations."""
    spent = endpoint_spend(endpoint_usage(ledger, state), prices)
    return fsum(each.usd or 0.0 for each in spent)
