"""The match list: every pair of responses that can be compared, in the customer's order.

Prompts in bank order, then dimensions, then pairs in roster order.
"""

from collections.abc import Collection
from itertools import combinations
from typing import Literal, NamedTuple

from ledger.events.judging import PairKey
from ledger.events.registration import Entrant, JudgeSettings, Prompt, Rubric
from ledger.events.responses import ResponseGenerated, response_key
from ledger.identity import Digest, JudgeId, PromptId
from projections.judge_query import JudgeQuery, ask
from projections.seeds import prompt_seed
from projections.tournament import Tournament


class Cell(NamedTuple):
    """One entrant's place at one prompt, answered or not."""

    entrant: Entrant
    prompt: Prompt
    seed: int
    response_key: Digest


class Pairing(NamedTuple):
    """Two entrants at one prompt on one dimension: planned, whether or not they have answered."""

    rubric: Rubric
    prompt: Prompt
    a: Cell
    b: Cell


class Match(NamedTuple):
    """A pairing with both responses, and the two questions it asks of a judge."""

    pairing: Pairing
    response_a: ResponseGenerated
    response_b: ResponseGenerated
    forward: JudgeQuery
    swapped: JudgeQuery

    @property
    def is_identical(self) -> bool:
        """Say whether both responses are one text: whoever judges them judges nothing."""
        return self.response_a.text == self.response_b.text

    def key(self, judge: JudgeId, policy: str) -> PairKey:
        """Name the outcome that a judge's verdicts on this match have under a policy."""
        return PairKey(
            dimension=self.pairing.rubric.dimension,
            prompt_id=self.pairing.prompt.prompt_id,
            entrant_a=self.pairing.a.entrant.entrant_id,
            entrant_b=self.pairing.b.entrant.entrant_id,
            judge=judge,
            policy=policy,
            forward=self.forward.query_key,
            swapped=self.swapped.query_key,
        )


def cells(tournament: Tournament, prompts: Collection[PromptId]) -> tuple[Cell, ...]:
    """Return each response that the tournament wants, prompts in bank order, then the roster."""
    return tuple(
        cell_of(tournament, entrant, prompt)
        for prompt in tournament.bank
        if prompt.prompt_id in prompts
        for entrant in tournament.roster
    )


def cell_of(tournament: Tournament, entrant: Entrant, prompt: Prompt) -> Cell:
    """Name the response that an entrant owes a prompt."""
    base = tournament.opening.generation_seed if tournament.opening else 0
    seed = prompt_seed(prompt.prompt_id, base=base)
    drawn_by = seed if entrant.is_seeded else None
    key = response_key(entrant.digest, prompt.text, seed=drawn_by, sample=0)
    return Cell(entrant, prompt, seed, key)


def response_status(tournament: Tournament, cell: Cell) -> Literal["generated", "failed", "owed"]:
    """Say what became of a cell; where memory lacked, another try or machine may have it."""
    if cell.response_key in tournament.responses:
        return "generated"
    failure = tournament.response_failures.get(cell.response_key)
    return "owed" if failure is None or failure.reason == "out_of_memory" else "failed"


def pairings(tournament: Tournament, prompts: Collection[PromptId]) -> tuple[Pairing, ...]:
    """Return every planned pairing; a prompt without gold is not planned where gold is needed."""
    by_prompt: dict[PromptId, list[Cell]] = {}
    for cell in cells(tournament, prompts):
        by_prompt.setdefault(cell.prompt.prompt_id, []).append(cell)
    return tuple(
        Pairing(rubric, row[0].prompt, a, b)
        for row in by_prompt.values()
        for rubric in tournament.dimensions
        if is_eligible(rubric, row[0].prompt)
        for a, b in combinations(row, 2)
    )


def is_eligible(rubric: Rubric, prompt: Prompt) -> bool:
    """Say whether a prompt can be judged on a rubric's dimension."""
    return prompt.gold_answer is not None or not rubric.needs_gold


def match_of(tournament: Tournament, pairing: Pairing, judge: JudgeSettings) -> Match | None:
    """Return the match for a judge, or None while a response is missing."""
    response_a = tournament.responses.get(pairing.a.response_key)
    response_b = tournament.responses.get(pairing.b.response_key)
    if response_a is None or response_b is None:
        return None
    rubric, prompt, a, b = pairing.rubric, pairing.prompt, response_a.text, response_b.text
    return Match(
        pairing,
        response_a,
        response_b,
        forward=ask(judge, rubric, prompt, a=a, b=b, order="forward"),
        swapped=ask(judge, rubric, prompt, a=a, b=b, order="swapped"),
    )
