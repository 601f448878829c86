"""Reliability of judges: each one's consistency and biases, and agreement between judges."""

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, combinations
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from ledger.events.judging import Verdict
from ledger.events.registration import JudgeSettings
from ledger.identity import Dimension, PromptId
from projections.intervals import RatioTerms, estimate_ratio
from projections.reliability.alternative_annotator import (
    GOLD,
    AlternativeAnnotatorTest,
    alternative_annotator_test,
)
from projections.reliability.concordance import (
    Agreement,
    Bounds,
    cohen,
    cohen_interval,
    fleiss,
    interval_of_all,
    kendall,
    krippendorff,
    spearman,
)
from projections.tournament.compared import OPPOSITE, TIE_BESIDE_WIN, ComparedBattle
from projections.tournament.matches import Match
from projections.tournament.settlement import (
    Compared,
    Settlement,
    by_dimension,
    failure_of,
    settle,
    verdict_of,
    win_shares,
)
from projections.tournament.state import Tournament
from projections.verdicts.policies import RECORDED, Rule, swap_consistent
from projections.verdicts.queries import Said

_FAULTS: Final = ("unreadable", "empty", "refused", "truncated")  # replies paid for in vain
COHEN: Final = "Cohen's kappa"
FLEISS: Final = "Fleiss' kappa"
_FEWEST_RANKED: Final = 3  # entrants: any two orders of two correlate by 1 or -1
KRIPPENDORFF: Final = "Krippendorff's alpha"
ADVANTAGE: Final = "advantage probability"
JUDGE_ADVANTAGE: Final = "advantage of the judge"
ANNOTATOR_ADVANTAGE: Final = "advantage of the annotator"
WINNING_RATE: Final = "winning rate at"


class Measure(NamedTuple):
    """One figure about one or more judges; value is None where not defined."""

    name: str
    value: float | None
    n: int  # on how many it rests
    low: float | None = None  # of its 95 % interval, clustered by prompt
    high: float | None = None
    judges: tuple[str, ...] = ()
    dimension: str = ""


_Pair: TypeAlias = tuple[Hashable, frozenset[str]]
"""A prompt's id, and the two entrants."""

VotesByAnnotator: TypeAlias = Mapping[str, Mapping[_Pair, ComparedBattle]]
"""By whoever voted, then by what was voted on."""
Judged: TypeAlias = Mapping[str, Mapping[Hashable, Compared]]
"""By judge or annotator, then by what was judged."""
_NO_VOTES: Final[Mapping[Dimension, VotesByAnnotator]] = {}


def agreement(
    tournament: Tournament,
    prompts: Collection[PromptId],
    judges: Sequence[JudgeSettings],
    rule: Rule = RECORDED,
    votes: Mapping[Dimension, VotesByAnnotator] = _NO_VOTES,
) -> tuple[Measure, ...]:
    """Measure judges on each dimension: each alone, each two, and all together.

    Judges are compared on the pairs where each has an outcome under the rule: `inconsistent` is one
    by `swap-consistent`, and none by `abstain-on-flip`; `concatenate` compares orders. Whoever
    voted on some pairs is compared as one more judge.
    """
    said = partial(verdict_of, tournament, parser=rule.parser)
    return tuple(
        measure._replace(dimension=dimension)
        for dimension, settled in _settled(tournament, prompts, judges, rule)
        for measure in _measures(tournament, settled, said, votes.get(dimension, {}))
    )


_Settled: TypeAlias = Mapping[str, Sequence[Settlement]]
"""What became of the pairings of a dimension, by judge."""


def _settled(
    tournament: Tournament,
    prompts: Collection[PromptId],
    judges: Sequence[JudgeSettings],
    rule: Rule,
) -> Iterator[tuple[Dimension, _Settled]]:
    settled = {
        judge.judge_id: by_dimension(tournament, settle(tournament, prompts, judge, rule))
        for judge in judges
    }
    for dimension in (rubric.dimension for rubric in tournament.dimensions):
        yield dimension, {name: groups[dimension] for name, groups in settled.items()}


def _asked(group: Iterable[Settlement]) -> list[Match]:
    """Return the matches that a judge can be measured by: those of different responses."""
    return [
        settlement.match
        for settlement in group
        if settlement.match is not None
        and not settlement.match.is_identical
        and settlement.order in {None, settlement.pairing.orders[0]}
    ]


def _measures(
    tournament: Tournament, settled: _Settled, said: Said, votes: VotesByAnnotator
) -> Iterator[Measure]:
    for name, group in settled.items():
        for measure in _habits(tournament, _asked(group), said):
            yield measure._replace(judges=(name,))
    if len(settled) + len(votes) == 1:
        return  # nobody to agree with
    judged, people, on = _compared(settled, votes)
    yield from compare_judges({**judged, **people}, on)


class AgreedWith(NamedTuple):
    """Who alone labelled battles that a judge judged, how many, and on how many they agree."""

    annotator: str
    n: int
    n_agreed: int


class JudgeTest(NamedTuple):
    """Whether a judge may replace one of the people who voted on a dimension."""

    dimension: str
    judge: str
    test: AlternativeAnnotatorTest
    alone: AgreedWith | None = None  # None: several annotators labelled


def judge_tests(
    tournament: Tournament,
    prompts: Collection[PromptId],
    judges: Sequence[JudgeSettings],
    rule: Rule,
    votes: Mapping[Dimension, VotesByAnnotator],
) -> tuple[JudgeTest, ...]:
    """Test each judge against those who voted on a dimension, where anybody did."""
    return tuple(
        test
        for dimension, settled in _settled(tournament, prompts, judges, rule)
        for test in each_judge_tested(dimension, *_compared(settled, votes.get(dimension, {})))
    )


def each_judge_tested(
    dimension: str, judged: Judged, people: Judged, prompts: Mapping[Hashable, Hashable]
) -> Iterator[JudgeTest]:
    """Yield the alternative annotator test of each judge; none if nobody voted.

    A judge whose orders contradict each other agrees with nobody. Of a person they are no vote.
    Gold labels are the truth: nobody is compared with them as with a person.
    """
    voted = {
        name: {item: vote.status for item, vote in on.items() if vote.status != "inconsistent"}
        for name, on in people.items()
    }
    if any(voted.values()):
        persons = {name: given for name, given in voted.items() if name != GOLD}
        for judge, on in judged.items():
            said = {item: verdict.status for item, verdict in on.items()}
            test = alternative_annotator_test(said, persons, prompts)
            alone = None
            if len(voted) == 1:
                [(name, labels)] = voted.items()
                agreed = [said[item] == label for item, label in labels.items() if item in said]
                alone = AgreedWith(name, len(agreed), sum(agreed))
            yield JudgeTest(dimension, judge, test, alone)


def figures_of(tests: Iterable[JudgeTest]) -> Iterator[Measure]:
    """Yield what a table shows of the tests that could be made."""
    for dimension, judge, test, _ in tests:
        if not test.results:
            continue
        n = len(test.annotators)
        measures = [Measure(ADVANTAGE, test.advantage, n, judges=(judge,))]
        for annotator in test.annotators:
            pair = judge, annotator.annotator
            measures += [
                Measure(JUDGE_ADVANTAGE, annotator.judge_advantage, annotator.n, judges=pair),
                Measure(
                    ANNOTATOR_ADVANTAGE, annotator.annotator_advantage, annotator.n, judges=pair
                ),
            ]
        for result in test.results:
            name = f"{WINNING_RATE} {result.epsilon:g}"
            measures.append(Measure(name, result.winning_rate, n, judges=(judge,)))
        yield from (measure._replace(dimension=dimension) for measure in measures)


def _compared(
    settled: _Settled, votes: VotesByAnnotator
) -> tuple[Judged, Judged, Mapping[Hashable, Hashable]]:
    """Return what judges judged, what people voted on the same, and the prompts of it."""
    judged = {
        name: {_named(settlement): settlement for settlement in group if _is_judged(settlement)}
        for name, group in settled.items()
    }
    every = {_named(settlement): settlement for settlement in chain.from_iterable(settled.values())}
    people = {name: dict(_voted_on(every, given)) for name, given in votes.items()}
    return judged, people, {named: settlement.cluster for named, settlement in every.items()}


def _named(settlement: Settlement) -> Hashable:
    """Name what was judged: a judge that is asked on a share of the prompts has fewer of them."""
    return settlement.pairing.names, settlement.order


def _voted_on(
    group: Mapping[Hashable, Settlement], votes: Mapping[_Pair, ComparedBattle]
) -> Iterator[tuple[Hashable, ComparedBattle]]:
    """Yield the votes by the names of the pairs that they are on, with the entrants in order."""
    for named, settlement in group.items():
        vote = votes.get((settlement.prompt_id, settlement.pairing.entrants))
        if vote is not None:
            yield named, vote.seen_from(settlement.entrant_a)


def compare_judges(judged: Judged, prompts: Mapping[Hashable, Hashable]) -> Iterator[Measure]:
    """Yield the agreement of each two judges, and of all that judged anything.

    Args:
        judged: By judge, then by what was judged: the outcome. Two judges name the entrants of a
            comparison in the same order.
        prompts: The prompt of what was judged.
    """
    for pair in combinations(judged, 2):
        yield from (measure._replace(judges=pair) for measure in _of_two(judged, pair, prompts))
    present = tuple(name for name, outcomes in judged.items() if outcomes)
    if len(present) > 1:
        items, rows = _judged_by_all(judged, present)
        labels, on = _statuses(rows), [prompts[item] for item in items]
        bounds = interval_of_all(labels, on, is_alpha=False)
        shown = _chance_corrected(fleiss(labels), "agreement of all", FLEISS, bounds)
        yield from (measure._replace(judges=present) for measure in shown)
        given = defaultdict[Hashable, list[str]](list)
        for item, compared in chain.from_iterable(judged[name].items() for name in present):
            given[item].append(compared.status)
        alpha, on = krippendorff([*given.values()]), [prompts[item] for item in given]
        bounds = interval_of_all([*given.values()], on, is_alpha=True)
        yield Measure(KRIPPENDORFF, alpha.kappa, alpha.n, *bounds)._replace(judges=present)


def _habits(tournament: Tournament, matches: Sequence[Match], said: Said) -> Iterator[Measure]:
    """Yield one judge's own figures; a query shared by two pairs counts once."""
    keys = [[key for _, key in match.keys] for match in matches]
    verdicts = {key: said(key) for key in chain(*keys)}
    both = Counter((verdicts[pair[0]], verdicts[pair[-1]]) for pair in keys if len(pair) > 1)
    given = Counter(verdicts.values())
    unread = (key for key in verdicts if verdicts[key] is None) if given.pop(None, 0) else ()
    failures = Counter(failure_of(tournament, key) for key in unread)
    n_replies = given.total() + sum(failures[reason] for reason in _FAULTS)
    yield from _order_consistency(both)
    yield rate_of("share of A", given["A"], given["A"] + given["B"])
    yield rate_of("tie rate", given["TIE"], given.total())
    for reason in _FAULTS:
        yield rate_of(f"{reason} rate", failures[reason], n_replies)


def _order_consistency(
    both: Mapping[tuple[Verdict | None, Verdict | None], int],
) -> Iterator[Measure]:
    """Yield the share of pairs on which the orders agree, and of those on which they do not."""
    ways = Counter[str]()
    for (forward, swapped), n in both.items():
        if forward is not None and swapped is not None:
            is_consistent = swap_consistent(forward, swapped) != "inconsistent"
            way = TIE_BESIDE_WIN if "TIE" in {forward, swapped} else OPPOSITE
            ways["order consistency" if is_consistent else way] += n
    for way in ("order consistency", OPPOSITE, TIE_BESIDE_WIN):
        yield rate_of(way, ways[way], ways.total())


def rate_of(name: str, n: int, of: int, judges: tuple[str, ...] = ()) -> Measure:
    """Return the measure of a share; no value without a case."""
    return Measure(name, n / of if of else None, of, judges=judges)


def _judged_by_all(
    judged: Judged, names: Sequence[str]
) -> tuple[list[Hashable], list[list[Compared]]]:
    """Return what each of some judges judged, and of each the outcomes, one per judge."""
    first, *others = (judged[name] for name in names)
    shared = [item for item in first if all(item in other for other in others)]
    return shared, [[judged[name][item] for name in names] for item in shared]


def _is_judged(settlement: Settlement) -> bool:
    """Say whether a judge reached an outcome; identical responses do not count."""
    match = settlement.match
    return match is not None and not match.is_identical and settlement.outcome is not None


def _of_two(
    judged: Judged, pair: Sequence[str], prompts: Mapping[Hashable, Hashable]
) -> Iterator[Measure]:
    """Yield the agreement of two judges, and their rank correlation of entrants."""
    items, rows = _judged_by_all(judged, pair)
    labels, on = _statuses(rows), [prompts[item] for item in items]
    first, second = [row[0] for row in labels], [row[1] for row in labels]
    agreed = np.array([a == b for a, b in zip(first, second, strict=True)], dtype=float)
    share = estimate_ratio(RatioTerms(agreed, np.ones(len(rows))), on, "share")
    bounds = cohen_interval(first, second, on)
    observed, *others = _chance_corrected(cohen(first, second), "agreement", COHEN, bounds)
    yield observed._replace(low=share.low, high=share.high)
    yield from others
    shares, others_shares = (
        win_shares((row[n] for row in rows), lambda each: (each.entrant_a, each.entrant_b))
        for n in (0, 1)
    )
    both = [entrant for entrant in shares if entrant in others_shares]
    sides = [shares[entrant] for entrant in both], [others_shares[entrant] for entrant in both]
    if len(both) >= _FEWEST_RANKED:
        yield Measure("Spearman's rho", spearman(*sides), len(both))
        yield Measure("Kendall's tau-b", kendall(*sides), len(both))


def _statuses(rows: Sequence[Sequence[Compared]]) -> list[list[str]]:
    """Return the category that each judge gave: `a` is the same entrant for each."""
    return [[verdict.status for verdict in row] for row in rows]


def _chance_corrected(
    agreement: Agreement, what: str, name: str, of_kappa: Bounds
) -> Iterator[Measure]:
    """Yield observed agreement, agreement by chance, and kappa."""
    yield Measure(what, agreement.observed, agreement.n)
    yield Measure(f"{what} by chance", agreement.by_chance, agreement.n)
    yield Measure(name, agreement.kappa, agreement.n, *of_kappa)
