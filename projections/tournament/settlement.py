"""Settlement: the outcome or status of every planned pairing."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from statistics import fmean
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar, cast, get_args

from ledger.events.judging import FailureReason, JudgeQueryFailed, Order, Outcome, Verdict
from ledger.events.registration import JudgeSettings
from ledger.identity import Digest, Dimension, EntrantId, PromptId
from projections.tournament.compared import (
    IDENTICAL,
    OPPOSITE,
    SCORES,
    TIE_BESIDE_WIN,
    Account,
    ComparedBattle,
    Counted,
    account_from,
)
from projections.tournament.matches import (
    Match,
    Pairing,
    match_of,
    matches,
    response_status,
)
from projections.tournament.state import Tournament
from projections.verdicts import policies
from projections.verdicts.parsers import BLIND_TO_STOPS, PARSERS

_CUT_SHORT: Final = frozenset({"refused", "truncated"})  # what is there is not the whole reply


def verdict_of(tournament: Tournament, query_key: Digest, parser: str | None) -> Verdict | None:
    """Return the verdict on a query, or None if there is none.

    A parser's full name reads the stored reply again: the one that gave a verdict, else the newest.
    """
    if parser is None:
        given = tournament.verdicts.get(query_key)
        return given.event.verdict if given else None
    reply = reply_of(tournament, query_key, parser)
    return None if reply is None else PARSERS[parser](reply)


def reply_of(tournament: Tournament, query_key: Digest, parser: str) -> str | None:
    """Return the stored reply for a parser to read again, or None if there is none."""
    given = tournament.verdicts.get(query_key)
    failure = tournament.query_failures.get(query_key)
    if given is not None:
        reply = given.event.reply
    elif failure is not None and _is_whole(failure, parser):
        reply = failure.reply
    else:
        return None
    return None if tournament.redactions.is_gone(query_key, reply) else reply


def failure_of(
    tournament: Tournament, query_key: Digest
) -> FailureReason | Literal["redacted"] | None:
    """Return why an answered query has no verdict; None if it was not answered."""
    if (given := tournament.verdicts.get(query_key)) is not None:
        is_gone = tournament.redactions.is_gone(query_key, given.event.reply)
        return "redacted" if is_gone else "unreadable"  # by the parser that reads it now
    failure = tournament.query_failures.get(query_key)
    return failure.reason if failure else None


def _is_whole(failure: JudgeQueryFailed, parser: str) -> bool:
    """Say whether there is a reply that is complete for a parser."""
    return bool(failure.reply) and (failure.reason not in _CUT_SHORT or parser in BLIND_TO_STOPS)


Status: TypeAlias = (
    Outcome | FailureReason | Literal["abstained", "no_response", "redacted", "pending"]
)
_OUTCOMES: Final[Mapping[str, Outcome]] = {outcome: outcome for outcome in get_args(Outcome)}
Key = TypeVar("Key", bound=Hashable)


class Settlement(NamedTuple):
    """A pairing with its outcome or status; match is None if a response is missing or redacted.

    Ratings count each order's verdict by itself. Where both agree the outcome says it all; else
    `said` has what the verdicts there are say of the pair. One that is asked in one order has the
    outcome that its verdict says, under every policy.
    """

    pairing: Pairing
    match: Match | None
    status: Status
    order: Order | None = None  # where each order counts for itself
    said: tuple[Outcome, ...] = ()
    is_identical: bool = False  # of responses that are redacted; else the match tells

    @property
    def outcome(self) -> Outcome | None:
        """The outcome, if there is one."""
        return _OUTCOMES.get(self.status)

    @property
    def battle_id(self) -> Digest:
        """What names the pairing, whatever its outcome."""
        return self.pairing.battle_id

    @property
    def score(self) -> float | None:
        """What a took: 1, 0, or 1/2 of a tie; None unless the pairing was decided or tied."""
        return SCORES.get(self.status)

    @property
    def exact_status(self) -> str:
        """The status, but IDENTICAL of some ties, and in which way a pair is inconsistent."""
        if self.status == "inconsistent" and len(set(self.said)) > 1:
            return TIE_BESIDE_WIN if "tie" in self.said else OPPOSITE
        is_identical = self.match.is_identical if self.match else self.is_identical
        return IDENTICAL if self.status == "tie" and is_identical else self.status

    @property
    def share(self) -> float | None:
        """The mean of what a took by each verdict there is; None without any."""
        return fmean(map(SCORES.__getitem__, self.said)) if self.said else self.score

    @property
    def dimension(self) -> Dimension:
        """The dimension."""
        return self.pairing.rubric.dimension

    @property
    def prompt_id(self) -> PromptId:
        """The prompt's id."""
        return self.pairing.prompt.prompt_id

    @property
    def cluster(self) -> str:
        """The prompt's text: prompts of one text are one, whatever their ids."""
        return self.pairing.prompt.text

    @property
    def entrant_a(self) -> EntrantId:
        """The one that the roster names first."""
        return self.pairing.a.entrant.entrant_id

    @property
    def entrant_b(self) -> EntrantId:
        """The other."""
        return self.pairing.b.entrant.entrant_id

    @property
    def winner(self) -> EntrantId | None:
        """The entrant that won, if any."""
        return {"a": self.entrant_a, "b": self.entrant_b}.get(self.status)

    @property
    def weight(self) -> float:
        """How often it counts: once, or half where there is, or is to be, one order only."""
        is_one_order = self.order is None and bool(self.pairing.slot)
        return 0.5 if is_one_order or len(self.said) == 1 else 1.0

    @property
    def slot(self) -> int:
        """1 where a was shown first only, -1 where second only; 0 in both orders, or unasked."""
        return 0 if self.exact_status == IDENTICAL else self.pairing.slot

    @property
    def counted(self) -> Counted:
        """A pair, or one of its orders."""
        return "orders" if self.order else "pairs"


Compared: TypeAlias = Settlement | ComparedBattle
"""Two entrants compared on a prompt: a pairing of a tournament, or an imported battle."""
ComparedT = TypeVar("ComparedT", bound=Compared)


def account_of(compared: Iterable[Compared]) -> Account:
    """Count what was compared, all of one kind, by status."""
    kinds, statuses, n_in_one_order = set[Counted](), list[str](), 0
    for battle in compared:
        kinds.add(battle.counted)
        statuses.append(battle.exact_status)
        n_in_one_order += bool(battle.slot) and battle.score is not None
    kind = kinds.pop() if kinds else "pairs"
    return account_from(Counter(statuses), kind, in_one_order=n_in_one_order)


def win_shares(
    compared: Iterable[ComparedT], keys: Callable[[ComparedT], tuple[Key, Key]]
) -> dict[Key, float]:
    """Return the share that each took by the verdicts there are; keys name both sides."""
    taken: defaultdict[Key, list[tuple[float, float]]] = defaultdict(list)
    for battle in compared:
        if battle.share is not None:
            for key, share in zip(keys(battle), (battle.share, 1.0 - battle.share), strict=True):
                taken[key].append((share, battle.weight))
    return {key: fmean(*zip(*found, strict=True)) for key, found in taken.items()}


def settle(
    tournament: Tournament,
    prompts: Collection[PromptId],
    judge: JudgeSettings,
    rule: policies.Rule = policies.RECORDED,
) -> tuple[Settlement, ...]:
    """Settle every planned pairing under a rule, in match order; once for all who ask again.

    Under `concatenate` each pairing is there once for each of its orders. Two identical responses
    that were recorded as a tie are one under every rule.

    Raises:
        KeyError: The rule's policy needs more than one judge.
    """
    name = "settled", frozenset(prompts), judge, rule
    if name not in tournament.computed:
        tournament.computed[name] = tuple(_settlements(tournament, prompts, judge, rule))
    return cast("tuple[Settlement, ...]", tournament.computed[name])


def accounts_of(
    tournament: Tournament, prompts: Collection[PromptId], judge: JudgeSettings
) -> Mapping[Dimension, Account]:
    """Count by status what a judge settled on each dimension."""
    groups = by_dimension(tournament, settle(tournament, prompts, judge))
    return {dimension: account_of(group) for dimension, group in groups.items()}


def _settlements(
    tournament: Tournament, prompts: Collection[PromptId], judge: JudgeSettings, rule: policies.Rule
) -> Iterator[Settlement]:
    for pairing, match in matches(tournament, prompts, judge):
        if rule == policies.RECORDED:
            yield _recorded(tournament, pairing, match, judge)
        else:
            yield from _read_again(tournament, pairing, match, judge, rule)


def settle_verdicts(
    tournament: Tournament, prompts: Collection[PromptId], judge: JudgeSettings
) -> tuple[Settlement, ...]:
    """Settle every planned pairing by the verdicts there are, in match order.

    So it is in the middle of judging as it will be when the pairs are reconciled. Of a redacted
    response, whose queries cannot be built, it is the outcome on record.
    """
    return tuple(
        _recorded(tournament, pairing, match, judge)
        if match is None
        else next(_read_again(tournament, pairing, match, judge, policies.RECORDED))
        for pairing, match in matches(tournament, prompts, judge)
    )


def recorded_settlement(
    tournament: Tournament, pairing: Pairing, judge: JudgeSettings
) -> Settlement:
    """Return a pairing with the outcome on record, or why there is none."""
    return _recorded(tournament, pairing, match_of(tournament, pairing, judge), judge)


def _recorded(
    tournament: Tournament, pairing: Pairing, match: Match | None, judge: JudgeSettings
) -> Settlement:
    if match is None:
        return _without_texts(tournament, pairing, judge)
    if pairing.slot:
        return next(_read_again(tournament, pairing, match, judge, policies.RECORDED))
    outcome = tournament.outcomes.get(match.key(judge.judge_id))
    if outcome is not None and outcome != "inconsistent":
        return Settlement(pairing, match, outcome)
    said = _said(tournament, match.keys)
    return Settlement(pairing, match, outcome or _unjudged(tournament, match.keys), said=said)


def _without_texts(tournament: Tournament, pairing: Pairing, judge: JudgeSettings) -> Settlement:
    """Return a pairing of which a response is missing or redacted."""
    status = _unanswered(tournament, pairing)
    if status != "redacted":
        return Settlement(pairing, None, status)
    about = (
        (*pairing.names, judge.judge_id, policies.DEFAULT_POLICY),
        (pairing.a.response_key, pairing.b.response_key),
        tournament.text_of,
    )
    redactions, rubric = tournament.redactions, pairing.rubric.digest
    recorded = redactions.outcome(*about)
    is_identical = recorded is not None and recorded[0].forward == recorded[0].swapped
    if pairing.slot and not is_identical:
        sent = ((order, redactions.query(*about, order, rubric)) for order in pairing.orders)
        said = _said(tournament, [(order, key) for order, key in sent if key is not None])
        return Settlement(pairing, None, said[0] if said else status, said=said)
    if recorded is None:
        return Settlement(pairing, None, status)
    key, outcome = recorded
    orders: tuple[tuple[Order, Digest], ...] = (("forward", key.forward), ("swapped", key.swapped))
    said = () if outcome in SCORES else _said(tournament, orders)
    return Settlement(pairing, None, outcome, said=said, is_identical=is_identical)


def _said(
    tournament: Tournament, queries: Iterable[tuple[Order, Digest]], parser: str | None = None
) -> tuple[Outcome, ...]:
    """Return what the verdicts on queries say of the pair, those that there are."""
    given = ((order, verdict_of(tournament, key, parser)) for order, key in queries)
    return tuple(
        policies.outcome_of_order(verdict, order) for order, verdict in given if verdict is not None
    )


def by_dimension(
    tournament: Tournament, settlements: Iterable[Settlement]
) -> dict[Dimension, tuple[Settlement, ...]]:
    """Group settlements by dimension, in the tournament's order, empty groups included."""
    groups: dict[Dimension, list[Settlement]] = {
        rubric.dimension: [] for rubric in tournament.dimensions
    }
    for settlement in settlements:
        groups[settlement.pairing.rubric.dimension].append(settlement)
    return {dimension: tuple(group) for dimension, group in groups.items()}


def _read_again(
    tournament: Tournament,
    pairing: Pairing,
    match: Match | None,
    judge: JudgeSettings,
    rule: policies.Rule,
) -> Iterator[Settlement]:
    orders: tuple[Order | None, ...] = (
        pairing.orders if rule.policy == policies.CONCATENATE else (None,)
    )
    for order in orders:
        said: tuple[Outcome, ...] = ()
        if match is None:
            status = _unanswered(tournament, pairing)
        elif _is_tie_unasked(tournament, match, judge):
            status = "tie"
        elif order is None and pairing.slot:
            status = _of_order(tournament, match, pairing.orders[0], rule)
            said = _said(tournament, match.keys, rule.parser)
        elif order is None:
            status = _of_pair(tournament, match, rule)
            if status not in SCORES and rule.policy != policies.ABSTAIN_ON_FLIP:
                said = _said(tournament, match.keys, rule.parser)
        else:
            status = _of_order(tournament, match, order, rule)
        yield Settlement(pairing, match, status, order, said)


def _is_tie_unasked(tournament: Tournament, match: Match, judge: JudgeSettings) -> bool:
    """Say whether identical responses were recorded as a tie."""
    recorded = tournament.outcomes.get(match.key(judge.judge_id))
    return match.is_identical and recorded == "tie"


def _of_pair(tournament: Tournament, match: Match, rule: policies.Rule) -> Status:
    forward = verdict_of(tournament, match.forward_key, rule.parser)
    swapped = verdict_of(tournament, match.swapped_key, rule.parser)
    if forward is None or swapped is None:
        return _unjudged(tournament, match.keys, rule.parser)
    if rule.policy == policies.ABSTAIN_ON_FLIP:
        return policies.abstain_on_flip(forward, swapped) or "abstained"
    return policies.POLICIES[rule.policy](forward, swapped)


def _of_order(tournament: Tournament, match: Match, order: Order, rule: policies.Rule) -> Status:
    key = match.key_in(order)
    verdict = verdict_of(tournament, key, rule.parser)
    if verdict is None:
        return _unjudged(tournament, [(order, key)], rule.parser)
    return policies.outcome_of_order(verdict, order)


def _unanswered(tournament: Tournament, pairing: Pairing) -> Status:
    statuses = {response_status(tournament, cell) for cell in (pairing.a, pairing.b)}
    if "failed" in statuses:
        return "no_response"
    return "redacted" if statuses == {"generated"} else "pending"


def _unjudged(
    tournament: Tournament, queries: Iterable[tuple[Order, Digest]], parser: str | None = None
) -> Status:
    """Return the first failure among queries, unless one of them is in flight."""
    for _, key in queries:
        if key in tournament.in_flight:
            return "pending"
        if verdict_of(tournament, key, parser) is None and (why := failure_of(tournament, key)):
            return why
    return "pending"
