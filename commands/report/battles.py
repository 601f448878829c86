"""The battles that a report shows: two responses side by side, and what the judge replied."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice, zip_longest
from typing import Final, Literal, NamedTuple, TypeAlias

from commands.report.subject import Subject
from commands.report.text import ShownText, shown_reply, shown_text, texts_beside
from ledger.events.judging import JudgeQueryFailed, Order, Outcome, VerdictReceived
from ledger.events.registration import JudgeSettings
from ledger.identity import Digest
from projections.tournament.compared import IDENTICAL, OPPOSITE, TIE_BESIDE_WIN
from projections.tournament.matches import Match
from projections.tournament.settlement import Settlement, failure_of, settle
from projections.tournament.state import PairNames, Tournament

_SAMPLE: Final = 40  # battles
_MOST: Final = 3_000  # characters of a text in a sample


WhichBattles: TypeAlias = Literal["all", "sample", "none"]
"""Which battles a report shows."""


class Side(NamedTuple):
    """One entrant's response."""

    entrant: str
    text: ShownText
    n_tokens: int | None  # None: the server did not say


class JudgeReply(NamedTuple):
    """What a judge said of one order."""

    judge: str
    order: Order
    first: str  # who was shown in slot A
    verdict: str
    text: ShownText


class ShownBattle(NamedTuple):
    """A battle as it is shown."""

    dimension: str
    prompt_id: str
    prompt: ShownText
    gold: str | None
    a: Side
    b: Side
    outcome: str  # a, b, tie or inconsistent
    says: str
    is_disputed: bool
    replies: tuple[JudgeReply, ...]


class Disputed(NamedTuple):
    """The battles on which the outcome depends on the order, or on who judges."""

    by_orders: frozenset[PairNames]
    by_judges: frozenset[PairNames]

    @property
    def all(self) -> frozenset[PairNames]:
        """Both."""
        return self.by_orders | self.by_judges


class ChosenBattles(NamedTuple):
    """The battles of a report, and how many there are in all."""

    shown: tuple[ShownBattle, ...]
    n_all: int
    disputed: Disputed


def battles_of(subject: Subject, which: WhichBattles) -> ChosenBattles:
    """Return the battles to show: all, none, or some of every outcome of every pair."""
    judged = [
        settlement
        for group in subject.results.settlements.values()
        for settlement in group
        if settlement.match is not None and settlement.outcome is not None
    ]
    state = subject.results.tournament
    contradicted = disputed(state, judged, subject.results.judge)
    keys = contradicted.all
    most = _MOST if which == "sample" else None
    chosen = judged if which == "all" else _sample(judged, keys) if which == "sample" else []
    shown = (
        shown_battle(
            state,
            settlement,
            settlement.match,
            is_disputed=settlement.pairing.names in keys,
            most=most,
        )
        for settlement in chosen
        if settlement.match
    )
    return ChosenBattles(tuple(shown), len(judged), contradicted)


def disputed(
    state: Tournament, settlements: Sequence[Settlement], judge: JudgeSettings
) -> Disputed:
    """Return the battles in which the orders or the judges disagree.

    Args:
        state: The tournament.
        settlements: By one judge.
        judge: That judge; the others of the panel are looked up.
    """
    prompts = {settlement.prompt_id for settlement in settlements}
    others = (settle(state, prompts, other) for other in state.panel if other != judge)
    outcomes: dict[PairNames, Outcome] = {}
    by_orders, by_judges = set(), set()
    for settlement in chain(settlements, *others):
        names, outcome = settlement.pairing.names, settlement.outcome
        if outcome == "inconsistent":
            by_orders.add(names)
        elif outcome and outcomes.setdefault(names, outcome) != outcome:
            by_judges.add(names)
    return Disputed(frozenset(by_orders), frozenset(by_judges))


def _sample(judged: Sequence[Settlement], disputed: frozenset[PairNames]) -> list[Settlement]:
    """Take battles in turn from each dimension, pair and outcome, disputed ones first.

    Of those that are alike, identical responses come last; else the order is that of their queries'
    digests, which is as good as drawn.
    """
    kinds: defaultdict[tuple[str, ...], list[Settlement]] = defaultdict(list)
    for settlement in judged:
        key = dimension, _, a, b = settlement.pairing.names
        kinds[str(key not in disputed), dimension, a, b, settlement.status].append(settlement)
    groups = [sorted(kinds[kind], key=_drawn) for kind in sorted(kinds)]
    in_turn = filter(None, chain.from_iterable(zip_longest(*groups)))
    return sorted(
        islice(in_turn, _SAMPLE),
        key=lambda each: (each.pairing.names not in disputed, _drawn(each)[0], each.pairing.names),
    )


def _drawn(settlement: Settlement) -> tuple[bool, str]:
    match = settlement.match
    return match is None or match.is_identical, match.forward_key if match else ""


def shown_battle(
    state: Tournament,
    settlement: Settlement,
    match: Match,
    *,
    is_disputed: bool,
    most: int | None,
) -> ShownBattle:
    """Return what is shown of a battle, texts cut at so many characters; None: whole."""
    dimension, prompt_id, a, b = settlement.pairing.names
    prompt = settlement.pairing.prompt
    both = (match.response_a, match.response_b)
    texts = texts_beside(*(response.text for response in both), most=most)
    first, second = (
        Side(name, text, response.n_generated_tokens)
        for name, text, response in zip((a, b), texts, both, strict=True)
    )
    return ShownBattle(
        dimension,
        prompt_id,
        shown_text(prompt.text, most),
        prompt.gold_answer,
        first,
        second,
        settlement.status,
        _said(settlement.exact_status, a, b) + ": identical responses" * match.is_identical,
        is_disputed,
        tuple(replies_of(state, match, (a, b), most)),
    )


_SAYS: Final[Mapping[str, str]] = {
    "a": "{a} won",
    "b": "{b} won",
    "tie": "tie",
    IDENTICAL: "tie",
    OPPOSITE: "inconsistent: opposite winners",
    TIE_BESIDE_WIN: "inconsistent: a tie beside a win",
    "inconsistent": "inconsistent: the verdict depends on the order",
    "pending": "no outcome yet",
}


def _said(status: str, a: str, b: str) -> str:
    said = _SAYS.get(status)
    return said.format(a=a, b=b) if said else f"no outcome: {status.replace('_', ' ')}"


def replies_of(
    state: Tournament, match: Match, names: tuple[str, str], most: int | None
) -> Iterator[JudgeReply]:
    """Yield both orders' replies; identical responses may never have been judged."""
    for order, key in match.keys:
        query = replied(state, key)
        if query is None:
            continue
        first, second = names if order == "forward" else names[::-1]
        yield JudgeReply(
            query.judge,
            order,
            first,
            _verdict(query.verdict, first, second)
            if isinstance(query, VerdictReceived)
            else f"no verdict: {failure_of(state, key)}",
            shown_reply(query.reply, most),
        )


def replied(state: Tournament, query_key: Digest) -> VerdictReceived | JudgeQueryFailed | None:
    """Return what became of a query, with the judge's reply; None: nothing yet."""
    given = state.verdicts.get(query_key)
    return given.event if given else state.query_failures.get(query_key)


def _verdict(verdict: str, first: str, second: str) -> str:
    return {"A": f"A, {first}", "B": f"B, {second}"}.get(verdict, "a tie")
