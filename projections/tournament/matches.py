"""The match list: every pair of responses to be compared, in the customer's order.

Prompts in bank order, then dimensions, then pairs in roster order. Also the pilot's prompts, which
are drawn from the bank.
"""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterator
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Final, Literal, NamedTuple, TypeAlias, cast

import msgspec

from ledger.events.conversations import Messages, asked_so_far, n_answers, transcript
from ledger.events.judging import Order, PairKey
from ledger.events.registration import (
    Entrant,
    JudgeSettings,
    Prompt,
    Rubric,
)
from ledger.events.responses import Followed, ResponseGenerated, response_key
from ledger.identity import Digest, EntrantId, JudgeId, PromptId, digest_of
from projections.tournament.bank import asked_prompts, is_eligible
from projections.tournament.designs import (
    BOTH,
    EntrantPair,
    design_of,
    planned_orders,
    planned_pairs,
)
from projections.tournament.state import PairNames, Tournament
from projections.tournament.waves import Stops, stops_of
from projections.verdicts.policies import DEFAULT_POLICY
from projections.verdicts.queries import PairQuery, Wording, wording_of

_WHAT_WORDS_IT: Final = attrgetter("rubric", "prompt", "planned")


def prompt_seed(prompt_id: PromptId, *, base: int = 0, sample: int = 0) -> int:
    """Return the seed of a prompt's response, in [0, 2^32): the same for every entrant.

    Equals the customer's harness for base 0 and sample 0: SHA-256 of the id, modulo 2^32.
    """
    digest = hashlib.sha256(prompt_id.encode()).digest()
    return (int.from_bytes(digest, "big") + base + sample) % 2**32


class PlannedResponse(NamedTuple):
    """The response planned for an entrant and a prompt, generated or not."""

    entrant: Entrant
    prompt: Prompt
    seed: int
    response_key: Digest
    asked: Messages = ()  # of a conversation: the turns so far, with the entrant's own answers
    earlier: tuple[Digest, ...] = ()  # the keys of those

    @property
    def text(self) -> str:
        """What is asked: the prompt's text, or the conversation so far."""
        return transcript(self.asked) if self.asked else self.prompt.text

    @property
    def keys(self) -> tuple[Digest, ...]:
        """The keys of the entrant's answers to a conversation's questions, this one the last."""
        return (*self.earlier, self.response_key)

    @property
    def follows(self) -> Followed | None:
        """The answer that it follows, and what the prompt has asked; None of a first answer."""
        if not self.earlier:
            return None
        unanswered = asked_so_far(self.prompt.turns, ("",) * len(self.earlier))
        return Followed(answer=self.earlier[-1], asked=digest_of(unanswered))

    @property
    def made(self) -> partial[ResponseGenerated]:
        """What makes its response of a text, and of all else that is told of it."""
        return partial(
            ResponseGenerated,
            response_key=self.response_key,
            entrant_id=self.entrant.entrant_id,
            prompt_id=self.prompt.prompt_id,
            seed=self.seed,
            sample=0,
            follows=self.follows or msgspec.UNSET,
        )

    @property
    def is_last(self) -> bool:
        """Say whether it is the response to all of the prompt; else more questions follow."""
        return len(self.earlier) + 1 == n_answers(self.prompt.turns)


class Pairing(NamedTuple):
    """Two entrants on one prompt and dimension: planned, whether or not both have responded."""

    rubric: Rubric
    prompt: Prompt
    a: PlannedResponse
    b: PlannedResponse
    orders: tuple[Order, ...] = BOTH
    """In which it is asked."""
    planned: tuple[Rubric, ...] = ()
    """The rubrics of all dimensions on which the two are compared on the prompt."""

    @property
    def battle_id(self) -> Digest:
        """Identify it by names alone, in whatever order the roster lists the entrants."""
        return digest_of([self.rubric.dimension, self.prompt.prompt_id, *sorted(self.entrants)])

    @property
    def names(self) -> PairNames:
        """The dimension, the prompt and both entrants."""
        a, b = self.a.entrant.entrant_id, self.b.entrant.entrant_id
        return self.rubric.dimension, self.prompt.prompt_id, a, b

    @property
    def entrants(self) -> frozenset[EntrantId]:
        """The names of both entrants."""
        return frozenset((self.a.entrant.entrant_id, self.b.entrant.entrant_id))

    @property
    def slot(self) -> int:
        """1 where a is shown first only, -1 where second only, 0 in both orders."""
        return sum(1 if order == "forward" else -1 for order in self.orders)


class Match(NamedTuple):
    """A pairing with both responses, and the keys of its two judge queries.

    A request may ask about several dimensions: then each has a query of its own in it.
    """

    pairing: Pairing
    response_a: ResponseGenerated
    response_b: ResponseGenerated
    wording: Wording
    forward_key: Digest
    swapped_key: Digest

    @property
    def forward(self) -> PairQuery:
        """The request that shows a's response first."""
        return self.query("forward")

    @property
    def swapped(self) -> PairQuery:
        """The request that shows b's response first."""
        return self.query("swapped")

    def query(self, order: Order) -> PairQuery:
        """Return the request in an order."""
        return self.wording.query(self.response_a.text, self.response_b.text, order)

    def key_in(self, order: Order) -> Digest:
        """Return the key of its query in an order."""
        return self.forward_key if order == "forward" else self.swapped_key

    @property
    def keys(self) -> tuple[tuple[Order, Digest], ...]:
        """The orders in which it is asked, with the keys of their queries."""
        return tuple((order, self.key_in(order)) for order in self.pairing.orders)

    @property
    def is_identical(self) -> bool:
        """Say whether both responses have the same text."""
        return self.response_a.text == self.response_b.text

    def key(self, judge: JudgeId) -> PairKey:
        """Return the key of this match's outcome by a judge."""
        queries = self.forward_key, self.swapped_key
        return PairKey(*self.pairing.names, judge, DEFAULT_POLICY, *queries)


def planned_responses(
    tournament: Tournament, prompts: Collection[PromptId]
) -> tuple[PlannedResponse, ...]:
    """Return every planned response: prompts in bank order, then the roster.

    Entrants that meet nobody on a prompt need no response to it, in a sparse design or where looks
    stopped their pairs.
    """
    chosen = frozenset(prompts)
    pairs, stops = planned_pairs(tournament), stops_of(tournament)
    all_meet = design_of(tournament).sparse is None and not stops.last_wave
    cells = list[PlannedResponse]()
    for prompt in (prompt for prompt in tournament.bank if prompt.prompt_id in chosen):
        is_compared = any(is_eligible(rubric, prompt) for rubric in tournament.dimensions)
        meeting = {
            entrant
            for pair in (() if all_meet else pairs[prompt.prompt_id])
            if not is_compared or _compared_by(tournament, stops, prompt, pair)
            for entrant in pair
        }
        cells += [
            planned_response(tournament, entrant, prompt)
            for entrant in tournament.roster
            if all_meet or entrant.entrant_id in meeting
        ]
    return tuple(cells)


def planned_response(tournament: Tournament, entrant: Entrant, prompt: Prompt) -> PlannedResponse:
    """Return the planned response of an entrant to a prompt.

    In a conversation of several questions it is the response to the first without an answer, or to
    the last: what is asked depends on the answers before.
    """
    base = tournament.opening.generation_seed if tournament.opening else 0
    seed = prompt_seed(prompt.prompt_id, base=base)
    # on record is what was said in this conversation, which another may have begun otherwise
    is_one_of_several = entrant.loader == "recorded" and n_answers(prompt.turns) > 1
    is_seeded = entrant.is_seeded or is_one_of_several
    key_of = partial(response_key, entrant.digest, seed=seed if is_seeded else None, sample=0)
    if not prompt.turns:
        return PlannedResponse(entrant, prompt, seed, key_of(prompt.text))
    asked = asked_so_far(prompt.turns, ())
    cell = PlannedResponse(entrant, prompt, seed, key_of(asked), asked)
    answers: tuple[str, ...] = ()
    is_redacted = False
    while not cell.is_last and (response := tournament.responses.get(cell.response_key)):
        answers = (*answers, response.text)
        asked = asked_so_far(prompt.turns, answers)
        is_redacted = is_redacted or response in tournament.redactions
        # the key follows from the answers' texts; where one is gone, the next names the one before
        following = PlannedResponse(entrant, prompt, seed, cell.response_key, asked, cell.keys)
        key = _recorded_key(tournament, following) if is_redacted else key_of(asked)
        if key is None:
            break
        cell = following._replace(response_key=key)
    return cell


def _recorded_key(tournament: Tournament, cell: PlannedResponse) -> Digest | None:
    """Return the key of the response that follows the same answers to the same questions.

    Of several, as of ledgers that were merged, it is the same one in each process.
    """
    follows = cell.follows
    responses = tournament.responses.values()
    return min(
        (response.response_key for response in responses if response.follows == follows),
        default=None,
    )


def shown_response(tournament: Tournament, cell: PlannedResponse) -> ResponseGenerated | None:
    """Return a response as it is shown: the last of several answers, with all since the first."""
    last = tournament.responses.get(cell.response_key)
    if last is None or not cell.earlier:
        return last
    own = cell.asked[len(asked_so_far(cell.prompt.turns, ())) :]
    tokens = [tournament.responses[key].n_generated_tokens for key in cell.keys]
    return msgspec.structs.replace(
        last,
        text=transcript((*own, ("assistant", last.text))),
        n_generated_tokens=None if None in tokens else sum(filter(None, tokens)),
    )


def response_status(
    tournament: Tournament, cell: PlannedResponse
) -> Literal["generated", "failed", "missing"]:
    """Return the status of a response; out of memory counts as missing, to be tried again."""
    if cell.response_key in tournament.responses:
        return "generated"
    failure = tournament.response_failures.get(cell.response_key)
    return "missing" if failure is None or failure.reason == "out_of_memory" else "failed"


def pairings(tournament: Tournament, prompts: Collection[PromptId]) -> tuple[Pairing, ...]:
    """Return every planned pairing; a needed gold answer that is missing leaves a prompt out.

    Those that the design leaves out, or that a look stopped before, are not planned.
    """
    pairs, stops = planned_pairs(tournament), stops_of(tournament)
    orders = planned_orders(tournament)
    by_prompt: dict[PromptId, dict[EntrantId, PlannedResponse]] = defaultdict(dict)
    for cell in planned_responses(tournament, prompts):
        by_prompt[cell.prompt.prompt_id][cell.entrant.entrant_id] = cell
    planned_pairings = list[Pairing]()
    for prompt in (prompt for prompt in tournament.bank if prompt.prompt_id in by_prompt):
        name, row = prompt.prompt_id, by_prompt[prompt.prompt_id]
        compared = [
            (row[a], row[b], orders(name, a, b), planned)
            for a, b in pairs[name]
            if (planned := _compared_by(tournament, stops, prompt, (a, b)))
        ]
        planned_pairings += [
            Pairing(rubric, prompt, a, b, asked, planned)
            for rubric in tournament.dimensions
            for a, b, asked, planned in compared
            if rubric in planned
        ]
    return tuple(planned_pairings)


def _compared_by(
    tournament: Tournament, stops: Stops, prompt: Prompt, pair: EntrantPair
) -> tuple[Rubric, ...]:
    """Return the rubrics by which a pair is compared on a prompt."""
    return tuple(
        rubric
        for rubric in tournament.dimensions
        if is_eligible(rubric, prompt)
        and not stops.leaves_out(rubric.dimension, prompt.prompt_id, pair)
    )


def match_of(tournament: Tournament, pairing: Pairing, judge: JudgeSettings) -> Match | None:
    """Return the match for a judge, or None if a response is missing or redacted."""
    if tournament.opening is None:
        return None
    instructions = tournament.opening.instructions
    rubric, prompt, planned = _WHAT_WORDS_IT(pairing)
    wording = wording_of(judge, instructions, rubric, prompt, planned=planned)
    a, b = (_readable(tournament, cell) for cell in (pairing.a, pairing.b))
    return _match(pairing, wording, a, b)


PlannedMatch: TypeAlias = tuple[Pairing, Match | None]
"""A pairing and its match; None: no response to show."""


def matches(
    tournament: Tournament, prompts: Collection[PromptId], judge: JudgeSettings
) -> tuple[PlannedMatch, ...]:
    """Return every pairing that is planned for a judge, with its match; once for all who ask."""
    name = (_MATCHES, frozenset(prompts), judge)
    if name not in tournament.computed:
        tournament.computed[name] = tuple(_matches(tournament, prompts, judge))
    return cast("tuple[PlannedMatch, ...]", tournament.computed[name])


def complete_matches(
    tournament: Tournament, prompts: Collection[PromptId], judge: JudgeSettings
) -> Iterator[Match]:
    """Yield the matches of the pairings with both responses."""
    return (match for _, match in matches(tournament, prompts, judge) if match is not None)


_MATCHES: Final = "matches"
_WHAT_MATCHES_SHOW: Final = attrgetter(
    "opening", "prompts", "rubrics", "entrants", "judges", "looks", "responses", "redactions"
)


def keep_matches(before: Tournament, after: Tournament) -> bool:
    """Let a later state use the known matches of an earlier one; return whether it can.

    It can where no pair was planned, answered or redacted in between: as while a judge is at work.
    Most of the time that a match takes goes into the keys of its queries.
    """
    earlier, later = _WHAT_MATCHES_SHOW(before), _WHAT_MATCHES_SHOW(after)
    is_same = all(one is other for one, other in zip(earlier, later, strict=True))
    if is_same:
        after.computed.update(
            (name, found)
            for name, found in before.computed.items()
            if isinstance(name, tuple) and name[0] == _MATCHES
        )
    return is_same


def _matches(
    tournament: Tournament, prompts: Collection[PromptId], judge: JudgeSettings
) -> Iterator[PlannedMatch]:
    opening = tournament.opening
    if opening is None:
        return
    responses: dict[tuple[Digest, ...], ResponseGenerated | None] = {}  # each is in many pairings

    def shown(cell: PlannedResponse) -> ResponseGenerated | None:
        if cell.keys not in responses:
            responses[cell.keys] = _readable(tournament, cell)
        return responses[cell.keys]

    asked = pairings(tournament, asked_prompts(tournament, prompts, judge))
    worded = groupby(asked, key=_WHAT_WORDS_IT)
    for (rubric, prompt, planned), group in worded:
        instructions = opening.instructions
        wording = wording_of(judge, instructions, rubric, prompt, planned=planned)
        for pairing in group:
            a, b = shown(pairing.a), shown(pairing.b)
            yield pairing, _match(pairing, wording, a, b)


def _match(
    pairing: Pairing,
    wording: Wording,
    a: ResponseGenerated | None,
    b: ResponseGenerated | None,
) -> Match | None:
    if a is None or b is None:
        return None
    return Match(pairing, a, b, wording, wording.key(a.text, b.text), wording.key(b.text, a.text))


def _readable(tournament: Tournament, cell: PlannedResponse) -> ResponseGenerated | None:
    """Return a response as it is shown, if it is there with all of its texts."""
    answers = (tournament.responses.get(key) for key in cell.keys)
    if any(answer is None or answer in tournament.redactions for answer in answers):
        return None
    return shown_response(tournament, cell)


def queries_to(
    state: Tournament, prompts: Collection[PromptId], judge: JudgeSettings
) -> Iterator[PairQuery]:
    """Yield the requests to a judge, in all planned orders, of every pair with both responses.

    One that asks about several dimensions comes once for each of them.
    """
    for match in complete_matches(state, prompts, judge):
        yield from map(match.query, match.pairing.orders)


def keys_of(
    state: Tournament, prompts: Collection[PromptId], judge: JudgeSettings
) -> Iterator[Digest]:
    """Yield the keys of the queries in them."""
    for match in complete_matches(state, prompts, judge):
        yield from (key for _, key in match.keys)
