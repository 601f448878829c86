"""The design of a tournament: which entrants meet on which prompt, and in which orders.

All pairs, those with a baseline, or a few on each prompt (sparse). A sparse design is drawn pair by
pair. A pair comes next whose entrants played least on the prompt; among those, a random one, where
entrants that played less on earlier prompts have better chances: a game more costs as much as lies
between the numbers that two pairs draw. So on a prompt, and over the bank, all play about equally
often: of 12 entrants, by 4 pairs on each of 143 prompts, each plays 94 to 99 games.

The draw depends on as little as it can, so that a change of the tournament owes few new pairs: of
two numbers of pairs, the smaller asks a part of the larger; a further prompt leaves the earlier
ones as they were; a further entrant takes the place of others, and most other pairs stay (a 13th
entrant changes 23 % of the pairs, of which 15 % are its own).

Counterbalanced, a pair is asked in one order, drawn by both entrants and the prompt alone: whatever
else is added, removed or put in another place, and whichever pairs are asked, it is the same. So a
pair has each order on half of the prompts as nearly as a fair coin has (of 143 prompts, 55 to 74 in
one and 14 in both), and what is left of the slot's effect is taken off the scores.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from ledger.events.judging import Order
from ledger.events.registration import Entrant, Prompt
from ledger.identity import Digest, EntrantId, PromptId, digest_of, drawn_by
from projections.tournament.state import Tournament

EntrantPair: TypeAlias = tuple[EntrantId, EntrantId]
"""Two entrants, in roster order."""
_Places: TypeAlias = tuple[int, int]  # of two entrants, ascending

Orders: TypeAlias = Literal["both", "counterbalanced"]
"""In how many orders each pair is asked: in both, or most in one."""

BOTH: Final[tuple[Order, ...]] = get_args(Order)
ONE_IN_BOTH: Final = 10  # of so many pairs of a counterbalanced design one is asked in both orders
_FIRST: Final = 1e6  # more than all chances: games on the prompt itself come first


class PairDesign(NamedTuple):
    """The design that the settings name; neither: all pairs of entrants meet."""

    baseline: EntrantId | None = None  # that all others meet
    sparse: int | None = None  # how many pairs meet on a prompt
    orders: Orders = "both"


def design_of(tournament: Tournament) -> PairDesign:
    """Return the design of the newest opening."""
    judging = tournament.configuration.get("judging", {})
    return PairDesign(**{key: judging[key] for key in PairDesign._fields if key in judging})


def without_design(tournament: Tournament) -> Tournament:
    """Return a tournament where all pairs are to meet, whatever the settings say."""
    if design_of(tournament) == PairDesign():
        return tournament  # with all that was computed of it
    judging = tournament.configuration.get("judging", {})
    return tournament.configured_as("judging", {**judging, **PairDesign()._asdict()})


def planned_pairs(tournament: Tournament) -> Mapping[PromptId, Sequence[EntrantPair]]:
    """Return the pairs that are to meet on each prompt of the bank, in roster order."""
    return pairs_by(design_of(tournament), tournament)


def pairs_by(
    design: PairDesign, tournament: Tournament
) -> Mapping[PromptId, Sequence[EntrantPair]]:
    """Return the pairs that would meet by a design, whatever the settings say."""
    bank = tournament.bank
    ids = [entrant.entrant_id for entrant in tournament.roster]
    if design.sparse is None or tournament.opening is None:
        every = tuple(pair for pair in combinations(ids, 2) if design.baseline in {None, *pair})
        return {prompt.prompt_id: every for prompt in bank}
    seed = tournament.opening.generation_seed
    drawn = _drawn(tournament.roster, bank, design.sparse, seed)
    return {
        prompt.prompt_id: [(ids[i], ids[j]) for i, j in pairs]
        for prompt, pairs in zip(bank, drawn, strict=True)
    }


OrdersOf: TypeAlias = Callable[[PromptId, EntrantId, EntrantId], tuple[Order, ...]]
"""Returns the orders in which two entrants, in roster order, are asked on a prompt."""


def planned_orders(tournament: Tournament) -> OrdersOf:
    """Return in which orders a pair is to be asked on a prompt of the bank."""
    return orders_by(design_of(tournament), tournament)


def orders_by(design: PairDesign, tournament: Tournament) -> OrdersOf:
    """Return in which orders a pair would be asked by a design, whatever the settings say."""
    opening = tournament.opening
    if opening is None or design.orders == "both":
        return lambda *_: BOTH
    roster, seed = tournament.roster, opening.generation_seed
    ids = [entrant.entrant_id for entrant in roster]
    names = dict(zip(ids, _names(roster), strict=True))
    texts = {prompt.prompt_id: digest_of(prompt.text) for prompt in tournament.bank}
    n_samples = Counter[Digest]()
    turned = set[PromptId]()  # every second sample of a prompt is asked in the other order
    for prompt_id, text in texts.items():
        turned |= {prompt_id} if n_samples[text] % 2 else set()
        n_samples[text] += 1

    def orders(prompt_id: PromptId, a: EntrantId, b: EntrantId) -> tuple[Order, ...]:
        first, second = (b, a) if prompt_id in turned else (a, b)
        return drawn_orders(names[first], names[second], texts[prompt_id], seed)

    return orders


def drawn_orders(a: str, b: str, text: Digest, seed: int) -> tuple[Order, ...]:
    """Draw the orders of a pair by its names, the digest of a prompt's text, and a seed."""
    first, second = sorted((a, b))
    place, number = divmod(drawn_by([seed, text, first, second]), ONE_IN_BOTH)
    if number == 0:
        return BOTH
    return ("forward",) if (place % 2 == 0) == (a == first) else ("swapped",)


def not_planned(tournament: Tournament) -> tuple[str, ...]:
    """Return a sentence on each kind of verdict that the design leaves out, if any."""
    (baseline, sparse, orders), n = design_of(tournament), len(tournament.roster)
    sentences: list[str] = []
    if sparse is not None:
        planned = f"{sparse} of {n * (n - 1) // 2} pairs are planned on each prompt"
        sentences.append(f"sparse: {planned}; verdicts on others are not rated")
    elif baseline is not None:
        planned = f"only pairs with {baseline} are planned"
        sentences.append(f"baseline: {planned}; verdicts on others are not rated")
    if orders == "counterbalanced":
        planned = f"9 of {ONE_IN_BOTH} pairs are planned in one order"
        sentences.append(f"counterbalanced: {planned}; the other order is not rated")
    return tuple(sentences)


def fewest_linking(
    roster: Sequence[Entrant], bank: Sequence[Prompt], seed: int, chosen: Collection[PromptId]
) -> int:
    """Return the fewest pairs a prompt that link all entrants on some prompts of a bank."""
    sizes = range(1, len(roster) * (len(roster) - 1) // 2 + 1)
    return next(n for n in sizes if is_linked(roster, bank, n, seed, chosen))


def is_linked(
    roster: Sequence[Entrant],
    bank: Sequence[Prompt],
    n_pairs: int,
    seed: int,
    chosen: Collection[PromptId],
) -> bool:
    """Say whether a chain of drawn pairs leads from the first entrant to each other one.

    Args:
        roster: All entrants.
        bank: All prompts: those before have a say in which pairs are drawn.
        n_pairs: On each prompt.
        seed: Of the draw.
        chosen: The prompts that are judged.
    """
    drawn = zip(bank, _drawn(roster, bank, n_pairs, seed), strict=True)
    pairs = {pair for prompt, pairs in drawn if prompt.prompt_id in chosen for pair in pairs}
    reached, last = {0}, 0
    while last < len(reached):
        last = len(reached)
        reached |= {place for pair in pairs if not reached.isdisjoint(pair) for place in pair}
    return len(reached) == len(roster)


def _drawn(
    roster: Iterable[Entrant], bank: Iterable[Prompt], n_pairs: int, seed: int
) -> tuple[tuple[_Places, ...], ...]:
    texts = tuple(prompt.text for prompt in bank)
    return drawn_pairs(tuple(_names(roster)), texts, n_pairs, seed)


def _names(roster: Iterable[Entrant]) -> Iterator[str]:
    """Name entrants by their content, so that a new label draws nothing anew; no two alike.

    Answers in a file grow with the bank, so there the label is what stays.
    """
    n_alike: Counter[str] = Counter()
    for entrant in roster:
        name = entrant.entrant_id if entrant.loader == "recorded" else entrant.digest
        yield f"{name} {n_alike[name]}"
        n_alike[name] += 1


@lru_cache(maxsize=8)  # asked for again and again
def drawn_pairs(
    names: tuple[str, ...], texts: tuple[str, ...], n_pairs: int, seed: int
) -> tuple[tuple[_Places, ...], ...]:
    """Draw pairs of entrants for each prompt, by their places; all where there are no more.

    Args:
        names: Of the entrants, no two alike.
        texts: Of the prompts.
        n_pairs: On each prompt.
        seed: Of the draw.
    """
    a, b = np.triu_indices(len(names), k=1)
    n_pairs, pull = min(n_pairs, len(a)), 1 / len(a)
    n_before = np.zeros((n_pairs, len(names)))  # games on earlier prompts, by the pairs up to each
    drawn = []
    for text in texts:
        numbers = _numbers(names, text, seed)
        cost = (numbers[a] ^ numbers[b]) / 2.0**64
        earlier = pull * (n_before - n_before.min(axis=1, keepdims=True))
        n_here = np.zeros(len(names))
        chosen: list[int] = []
        for place, row in enumerate(earlier):
            played = row + _FIRST * n_here
            pair = int((cost + played[a] + played[b]).argmin())
            cost[pair] = np.inf
            chosen.append(pair)
            n_here[a[pair]] += 1
            n_here[b[pair]] += 1
            n_before[place] += n_here
        drawn.append(tuple((int(a[pair]), int(b[pair])) for pair in sorted(chosen)))
    return tuple(drawn)


def _numbers(names: Sequence[str], text: str, seed: int) -> NDArray[np.uint64]:
    """Draw a number for each entrant on a prompt, whoever else competes."""
    prompt = digest_of(text)
    return np.array([drawn_by([seed, prompt, name]) for name in names], dtype=np.uint64)
