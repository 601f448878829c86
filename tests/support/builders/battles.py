"""Battles that others held, that a test tells, and that are simulated; what is fitted to them.

In simulated tournaments all pairs of four entrants meet on each prompt, and what is peculiar to an
answer is in all three of its battles. So battles of one prompt are no independent evidence; and as
chances are averaged over prompts, Bradley-Terry strengths come out nearer to each other than what
is put in.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace as with_columns
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from ledger.events.imports import (
    BattlesImported,
    CodedColumn,
    ImportedBattle,
    VoteSample,
    encode_cells,
)
from ledger.events.ratings import BradleyTerryParameters
from ledger.identity import digest_of
from projections.battles.columns import Battles, without_slot_effect
from projections.intervals import Floats
from projections.ratings.bradley_terry.likelihood import Likelihood
from projections.ratings.bradley_terry.rate import rate
from projections.tournament.designs import drawn_orders
from tests.support.builders.events import key

BattleRow: TypeAlias = (
    tuple[str, str, float, Hashable] | tuple[str, str, float, Hashable, float]
)  # the fields of a Battle


class Battle(NamedTuple):
    """A comparison of two entrants; score is a's: 1 won, 0 lost, 1/2 tied, or between."""

    a: str
    b: str
    score: float
    prompt: Hashable
    weight: float = 1.0


def in_columns(rows: Iterable[BattleRow]) -> Battles:
    """Return battles in columns; entrants are sorted, prompts numbered in order."""
    whole = [Battle(*row) for row in rows]
    names = sorted({name for row in whole for name in (row.a, row.b)})
    prompts = [*dict.fromkeys(row.prompt for row in whole)]
    numbers = {prompt: number for number, prompt in enumerate(prompts)}
    return Battles.by_score(
        tuple(names),
        a=np.array([names.index(row.a) for row in whole], dtype=np.intp),
        b=np.array([names.index(row.b) for row in whole], dtype=np.intp),
        score=np.array([row.score for row in whole], dtype=np.float64),
        cluster=np.array([numbers[row.prompt] for row in whole], dtype=np.intp),
        weight=np.array([row.weight for row in whole], dtype=np.float64),
        prompts=tuple(prompts),
    )


def imported_battles(
    a: Sequence[str] = ("x",), b: Sequence[str] = ("y",), **fields: object
) -> BattlesImported:
    """Return battles of a against b, in their order; without more fields people preferred a."""
    entrants = tuple(dict.fromkeys((*a, *b)))
    event = BattlesImported(
        file_digest=key("file"),
        format="plain",
        mapping_version=1,
        chunk=1,
        n_skipped=0,
        entrants=entrants,
        a=encode_cells(a, entrants),
        b=encode_cells(b, entrants),
        winners=CodedColumn(("model_a",)),
        prefs=CodedColumn((None,)),
        prompts=CodedColumn((None,)),
        sources=CodedColumn(("human",)),
        judges=CodedColumn((None,)),
        weights=CodedColumn((1.0,)),
    )
    return replace(event, **fields)


def of_file(battles: Sequence[ImportedBattle], drawn: VoteSample | None = None) -> BattlesImported:
    """Return battles of a file, or a vote on a pair that was drawn."""
    mapping = ("plain", 1) if drawn is None else ("annotation", 1)
    return BattlesImported.of(
        battles, file_digest=key("file"), mapping=mapping, chunk=1, n_skipped=0, drawn=drawn
    )


Pair = tuple[str, str]


def beaten(*pairs: Pair) -> list[Battle]:
    """Return battles in which the first of each pair beat the second, on prompts 1, 2, 3 ..."""
    return [Battle(a, b, 1.0, prompt) for prompt, (a, b) in enumerate(pairs, start=1)]


RING: Final = beaten(("a", "b"), ("b", "c"), ("c", "a"))


def played(games: Mapping[Pair, tuple[int, int, int]]) -> list[Battle]:
    """Return battles, each on a prompt of its own, by how often the first won, lost and tied."""
    scores = {
        pair: [1.0] * won + [0.0] * lost + [0.5] * tied for pair, (won, lost, tied) in games.items()
    }
    flat = [(pair, score) for pair, each in scores.items() for score in each]
    return [Battle(a, b, score, number) for number, ((a, b), score) in enumerate(flat)]


def fitted(likelihood: Likelihood) -> Floats:
    """Return the fit, of which there is one."""
    fit = likelihood.fit()
    assert fit is not None
    return fit


def strengths_covariance(likelihood: Likelihood, fit: Floats) -> Floats:
    """Return the sandwich covariance of strengths, (n, n), of which differences are determined."""
    figures = np.eye(likelihood.model.n_entrants, len(fit))
    return likelihood.sandwich(fit).spread_of(figures)[0]


N_PROMPTS: Final = 143
STRENGTHS: Final = np.array([-0.6, -0.2, 0.2, 0.6])  # logits
OWN: Final = 1.0  # standard deviation of an answer's own strength, in logits
_TIES: Final = 0.5  # Davidson's nu: a sixth of the battles are ties


class Coverage(NamedTuple):
    """The share of intervals that hold the truth, and its standard error."""

    share: float
    error: float


def tournaments(
    n: int, *, n_prompts: int = N_PROMPTS, own: float = OWN, strengths: Floats = STRENGTHS
) -> list[Battles]:
    """Return the battles of n tournaments, always the same."""
    return [*draw_tournaments(n, n_prompts=n_prompts, own=own, strengths=strengths)]


def draw_tournaments(
    n: int,
    *,
    n_prompts: int,
    own: float = OWN,
    strengths: Floats = STRENGTHS,
    ties: float = _TIES,
) -> Iterator[Battles]:
    """Yield the battles of n tournaments, always the same, one at a time; ties: Davidson's nu."""
    rng = np.random.default_rng(2026)
    for _ in range(n):
        yield _tournament(rng, strengths, n_prompts, own, ties)


class VerdictsByOrder(NamedTuple):
    """The battles of a tournament in both orders: what a took where it, and where b, was first."""

    forward: Battles
    swapped: Battles


def draw_orders(
    n: int, *, n_prompts: int, strengths: Floats, slot: float, own: float = OWN
) -> Iterator[VerdictsByOrder]:
    """Yield tournaments judged in both orders, always the same; slot: logits for who is first."""
    rng = np.random.default_rng(2026)
    a, b = _pairs(strengths)
    for _ in range(n):
        answers = strengths + rng.normal(scale=own, size=(n_prompts, len(strengths)))
        lead = answers[:, a] - answers[:, b]
        scores = (_drawn(rng, lead + first, _TIES) for first in (slot, -slot))
        yield VerdictsByOrder(*(all_met(_names(strengths), each) for each in scores))


def in_both(verdicts: VerdictsByOrder) -> Battles:
    """Return battles where each pair was asked in both orders."""
    score = (verdicts.forward.score + verdicts.swapped.score) / 2
    return with_columns(verdicts.forward, score=score)


def counterbalanced(verdicts: VerdictsByOrder, seed: int) -> Battles:
    """Return battles where most pairs were asked in one order, as a seed draws it."""
    both = in_both(verdicts)
    met = zip(both.a.tolist(), both.b.tolist(), both.cluster.tolist(), strict=True)
    orders = (
        drawn_orders(both.entrants[a], both.entrants[b], digest_of(prompt), seed)
        for a, b, prompt in met
    )
    slot = np.array(
        [0 if len(each) > 1 else 1 if each == ("forward",) else -1 for each in orders],
        dtype=np.int8,
    )
    asked = Battles.by_score(
        both.entrants,
        both.a,
        both.b,
        np.choose(slot + 1, (verdicts.swapped.score, both.score, verdicts.forward.score)),
        both.cluster,
        np.where(slot == 0, 1.0, 0.5),
    )
    return without_slot_effect(with_columns(asked, slot=slot))


def truth(*, own: float = OWN, strengths: Floats = STRENGTHS, slot: float = 0.0) -> Floats:
    """Return the Bradley-Terry ratings of endless prompts in both orders, (n_entrants,).

    Each pair scores what is expected of it, over the difference of two answers' own strengths.
    """

    def score(lead: Floats) -> Floats:
        forward, swapped = (_chances(lead + first) for first in (slot, -slot))
        win, tie = (np.mean(each, axis=0) for each in zip(forward, swapped, strict=True))
        return np.asarray(win + tie / 2)

    return of_endless_prompts(_names(strengths), strengths, 2**0.5 * own, score)


def of_endless_prompts(
    entrants: tuple[str, ...], strengths: Floats, spread: float, score: Callable[[Floats], Floats]
) -> Floats:
    """Return the Bradley-Terry ratings that ever more prompts come to, (n_entrants,).

    Args:
        entrants: Their names.
        strengths: (n_entrants,) logits.
        spread: Standard deviation of what is peculiar to two answers, which is normal, in logits.
        score: What is expected of the first where it leads by so much.
    """
    nodes, weights = np.polynomial.hermite.hermgauss(80)
    a, b = _pairs(strengths)
    lead = (strengths[a] - strengths[b])[:, None] + 2**0.5 * spread * nodes
    scores = score(lead) @ (weights / weights.sum())
    return rate(all_met(entrants, scores[None, :]), BradleyTerryParameters()).rating


def all_met(entrants: tuple[str, ...], scores: Floats) -> Battles:
    """Return the battles of all pairs on each prompt, given (n_prompts, n_pairs) scores."""
    n_prompts, n_pairs = scores.shape
    a, b = (np.tile(each, n_prompts) for each in np.triu_indices(len(entrants), k=1))
    prompt = np.repeat(np.arange(n_prompts), n_pairs)
    names = tuple(f"p{number}" for number in range(n_prompts))
    return Battles.by_score(entrants, a, b, scores.ravel(), prompt, np.ones(scores.size), names)


def coverage(intervals: Floats, true: Floats) -> Coverage:
    """Count the intervals that hold the truth.

    The ratings of one tournament err together, so the standard error is of tournaments' shares.

    Args:
        intervals: (n_tournaments, n_entrants, 2) bounds.
        true: (n_entrants,).
    """
    held = (intervals[:, :, 0] <= true) & (true <= intervals[:, :, 1])
    shares = held.mean(axis=1)
    return Coverage(float(shares.mean()), float(shares.std(ddof=1) / np.sqrt(len(shares))))


def bradley_terry(drawn: list[Battles], parameters: BradleyTerryParameters) -> Floats:
    """Return the intervals of each tournament, (n_tournaments, n_entrants, 2)."""
    rated = [rate(battles, parameters) for battles in drawn]
    return np.array([np.stack([each.lower, each.upper], axis=1) for each in rated])


def _tournament(
    rng: np.random.Generator, strengths: Floats, n_prompts: int, own: float, ties: float
) -> Battles:
    a, b = _pairs(strengths)
    answers = strengths + rng.normal(scale=own, size=(n_prompts, len(strengths)))
    return all_met(_names(strengths), _drawn(rng, answers[:, a] - answers[:, b], ties))


def _drawn(rng: np.random.Generator, lead: Floats, ties: float) -> Floats:
    """Draw the scores of those that are so much stronger."""
    win, tie = _chances(lead, ties)
    drawn = rng.random(win.shape)
    return np.where(drawn < win, 1.0, np.where(drawn < win + tie, 0.5, 0.0))


def _pairs(strengths: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    a, b = np.triu_indices(len(strengths), k=1)
    return a, b


def _chances(lead: Floats, ties: float = _TIES) -> tuple[Floats, Floats]:
    """Return how probably one that is so much stronger wins, and ties (Davidson 1970)."""
    up, down = np.exp(lead / 2), np.exp(-lead / 2)
    total = up + down + ties
    return up / total, ties / total


def _names(strengths: Floats) -> tuple[str, ...]:
    return tuple(f"e{number:02}" for number in range(len(strengths)))
