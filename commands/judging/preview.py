"""Use case: show what a judge would be sent about a prompt. Nothing is sent."""

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple, TypeAlias

import msgspec

from commands.errors import ConfigurationError
from ledger.events.registration import JudgeSettings, Prompt
from projections.results.columns import Shown
from projections.tournament.bank import asked_prompts
from projections.tournament.matches import Match, complete_matches, pairings
from projections.tournament.state import Tournament
from projections.verdicts.queries import JudgeQuery

RequestBuilder: TypeAlias = Callable[[JudgeQuery], Mapping[str, object]]
"""Turns a query into the request that a provider is sent."""


class RequestPreview(NamedTuple):
    """A pair's query in its first order, and the request as its provider would be sent it."""

    dimension: Shown[str]
    prompt: Shown[str]
    order: Shown[str]
    entrant_a: Shown[str]
    entrant_b: Shown[str]
    judge: Shown[str]
    provider: Shown[str]
    query_key: Shown[str]
    system: Shown[str]
    user: Shown[str]
    request: Any  # as it is sent; None: the judge is on this machine, and is sent none


def preview_requests(
    state: Tournament, prompt_id: str, judge: JudgeSettings, build: RequestBuilder | None
) -> tuple[RequestPreview, ...]:
    """Return the request for one pair of a prompt on each dimension.

    Raises:
        ConfigurationError: There is no such prompt, or nothing can be asked about it yet.
    """
    prompt = _prompt(state, prompt_id)
    previews = tuple(_previews(state, prompt, judge, build))
    if not previews:
        raise ConfigurationError([_why_nothing(state, prompt, judge)])
    return previews


def _previews(
    state: Tournament, prompt: Prompt, judge: JudgeSettings, build: RequestBuilder | None
) -> Iterator[RequestPreview]:
    """Yield the first pair of each dimension whose responses differ, or else its first pair."""
    matches = [*complete_matches(state, [prompt.prompt_id], judge)]
    for rubric in state.dimensions:
        of_rubric = [match for match in matches if match.pairing.rubric == rubric]
        if of_rubric:
            match = min(of_rubric, key=lambda match: match.is_identical)
            yield preview_of(match, judge, build)


def preview_of(match: Match, judge: JudgeSettings, build: RequestBuilder | None) -> RequestPreview:
    """Return a pair's query in its first order, and its request."""
    pairing = match.pairing
    query = match.query(pairing.orders[0])
    return RequestPreview(
        dimension=pairing.rubric.dimension,
        prompt=pairing.prompt.prompt_id,
        order=query.order,
        entrant_a=pairing.a.entrant.entrant_id,
        entrant_b=pairing.b.entrant.entrant_id,
        judge=judge.judge_id,
        provider=judge.provider,
        query_key=query.query_key,
        system=query.system,
        user=query.user,
        request=build and msgspec.json.decode(msgspec.json.encode(build(query))),
    )


def _prompt(state: Tournament, prompt_id: str) -> Prompt:
    prompts = {str(prompt.prompt_id): prompt for prompt in state.bank}
    if prompt_id not in prompts:
        close = get_close_matches(prompt_id, prompts, n=2, cutoff=0.5)
        hint = f"did you mean {' or '.join(map(repr, close))}?" if close else "see [prompts] bank"
        raise ConfigurationError([f"--show-prompt {prompt_id!r} is not a prompt_id; {hint}"])
    return prompts[prompt_id]


def _why_nothing(state: Tournament, prompt: Prompt, judge: JudgeSettings) -> str:
    shown = f"--show-prompt {prompt.prompt_id!r}: no request can be shown"
    if not asked_prompts(state, [prompt.prompt_id], judge):
        return f"{shown}, since the prompt is not in the share of {judge.judge_id}"
    if not pairings(state, [prompt.prompt_id]):
        return f"{shown}, since every rubric needs a gold answer, and the prompt has none"
    return f"{shown}, since no two entrants have responded to it; run `tourney apply generate`"
