"""The finding: who leads a dimension, if that is shown, and what speaks against it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from commands.errors import counted
from commands.report.text import decimal, listed, percent
from ledger.events.registration import JudgeSettings
from projections.ratings.bradley_terry.leaderboard import Leaderboard, pairs
from projections.results.ratings import BradleyTerryPair, BradleyTerryRow, FragilityRow
from projections.tournament.compared import Account

_THIN: Final = 30  # prompts: with fewer, half the differences are more than 100 Elo points unsure
_DOUBTFUL: Final = 0.2  # of the judged pairs are inconsistent
_MANY_TIES: Final = 0.3  # of the decided and tied pairs are tied
_FRAGILE: Final = 0.02  # of the prompts decide who is ahead
_MOST_NAMED: Final = 4
_SEEN_AS_ZERO: Final = 0.5  # Elo points, without decimals


class LeadFinding(NamedTuple):
    """Who leads, and how surely."""

    verdict: str  # "leads", "not shown" or "open"
    leaders: tuple[str, ...]  # the first of them has the highest rating
    sentence: str
    evidence: str = ""  # by how much, and how sure that is


def finding_on_labelled(judge: JudgeSettings) -> LeadFinding:
    """Say what labelled pairs of answers measure: their sides are no systems that could lead."""
    return LeadFinding(
        "open",
        (),
        "a and b are the two sides of labelled pairs, not systems: their ranking means nothing.",
        f"What this set measures is how often {judge.judge_id} agrees with the labels: see tourney"
        " project agreement --truth people, after tourney import battles votes.csv --name people.",
    )


def finding_of(board: Leaderboard, account: Account) -> LeadFinding:
    """Say who leads: by intervals that hold for all differences at once.

    The leader leads if it is surely better than everybody; whoever is not surely worse is not shown
    to differ from it. At the level of the intervals, whoever is truly best is among those named.
    While pairs are pending, the sentence begins with how many are judged.
    """
    finding, so_far = _finding_of(board), account.so_far
    return finding._replace(sentence=f"{so_far}. {finding.sentence}") if so_far else finding


def _finding_of(board: Leaderboard) -> LeadFinding:
    if not any(place.n_battles for place in board.rows):
        return _open("No pair is decided or tied, so nobody can be ranked.")
    tops = _groups_above_all(board)
    if len(tops) != 1:
        return _open(
            f"The entrants fall into {len(board.groups)} groups that cannot be compared:"
            " no chain of wins leads from one to the other, so nobody leads."
        )
    members = [place for place in board.rows if place.group == tops[0]]
    if len(members) == 1:
        return _alone(members[0])
    return _of_group(board, members)


def _open(sentence: str) -> LeadFinding:
    return LeadFinding("open", (), sentence)


def _groups_above_all(board: Leaderboard) -> list[int]:
    """Return the groups that none is above, which are several if they do not compare."""
    above = board.ratings.components.above
    return [number + 1 for number in range(len(board.groups)) if not above[:, number].any()]


def _alone(place: BradleyTerryRow) -> LeadFinding:
    return LeadFinding(
        "open",
        (place.entrant,),
        f"{place.entrant} won or tied all its battles ({place.n_battles}). That gives no finite"
        " rating, so it is not shown to be better.",
    )


def _of_group(board: Leaderboard, members: Sequence[BradleyTerryRow]) -> LeadFinding:
    best, *others = members
    if best.rating is None:
        return _open("The ratings have no finite solution, so nobody can be ranked.")
    if best.rank_low is None:
        why = best.no_interval or "it has no interval"
        leaders = _highest(members)
        named = listed(leaders) if len(leaders) <= _MOST_NAMED else f"{len(leaders)} entrants"
        has = "has the highest rating" if len(leaders) == 1 else "share the highest rating"
        return LeadFinding(
            "open", leaders, f"{named} {has}, but it is unknown how sure that is ({why})."
        )
    found = [pair for pair in pairs(board.ratings) if pair.entrant_a == best.entrant]
    surely_worse = {pair.entrant_b for pair in found if pair.low is not None and pair.low > 0}
    gaps = {pair.entrant_b: pair for pair in found}
    alike = tuple(each.entrant for each in others if each.entrant not in surely_worse)
    evidence = _evidence(board, gaps.get(alike[0] if alike else others[0].entrant))
    if not alike:
        sentence = f"{best.entrant} leads{_among(board, members)}: {_beaten(others)}."
        return LeadFinding("leads", (best.entrant,), sentence, evidence)
    highest = f"{best.entrant} has the highest rating{_among(board, members)}"
    sentence = f"{highest}, but is not shown to differ from {_like(alike, len(others))}."
    return LeadFinding("not shown", (best.entrant, *alike), sentence, evidence)


def _among(board: Leaderboard, members: Sequence[BradleyTerryRow]) -> str:
    """Say so if the leader was compared with a part of the entrants only."""
    if len(members) == len(board.rows):
        return ""
    return f" among the {len(members)} of {len(board.rows)} entrants whose ratings compare"


def _highest(members: Sequence[BradleyTerryRow]) -> tuple[str, ...]:
    """Return all that are rated like the first."""
    rated = [(member.entrant, member.rating) for member in members if member.rating is not None]
    return tuple(name for name, rating in rated if rated[0][1] - rating < _SEEN_AS_ZERO)


def _evidence(board: Leaderboard, gap: BradleyTerryPair | None) -> str:
    """Say how far the best is ahead of another, and which differences the battles allow."""
    if gap is None or gap.low is None or gap.high is None:
        return ""
    level = f"{100 * board.ratings.parameters.level:g} %"
    ahead = f"It is {abs(gap.difference):.0f} points ahead of {gap.entrant_b}"
    digits = int(min(abs(gap.low), abs(gap.high)) < _SEEN_AS_ZERO)  # who leads is not 0 ahead
    low, high = decimal(gap.low, digits), decimal(gap.high, digits)
    return f"{ahead}; with {level} confidence the difference lies between {low} and {high}."


def _beaten(others: Sequence[BradleyTerryRow]) -> str:
    if len(others) == 1:
        return f"it is significantly better than {others[0].entrant}"
    return f"it is significantly better than each of the other {len(others)}"


def _like(alike: Sequence[str], n_others: int) -> str:
    """Name those from whom the first is not shown to differ."""
    if len(alike) == n_others > 1:
        return "any of the others"
    return listed(alike) if len(alike) <= _MOST_NAMED else f"{len(alike)} others"


def caveats_of(
    board: Leaderboard,
    account: Account,
    fragile: Iterable[FragilityRow],
    judge: JudgeSettings,
    *,
    n_prompts: int,
    drops_ties: bool,
    failed: Mapping[str, int],
    stronger: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return what a reader must know before believing the finding, the gravest first.

    Args:
        board: The ratings.
        account: What became of the pairs.
        fragile: How few prompts decide.
        judge: Who decided.
        n_prompts: On which some entrant was compared, the most of all.
        drops_ties: Whether Elo does.
        failed: How many responses of each entrant failed, of those of which some did.
        stronger: Judges that have a share of the prompts, to correct this one.
    """
    return (
        *_on_evidence(account, n_prompts, failed),
        *_on_fragility(board, fragile),
        *_on_ties(account, drops_ties=drops_ties),
        *(_on_judge(judge) if account.n_judged else ()),
        *(_on_cascade(judge.judge_id, each) for each in stronger),
    )


def _on_evidence(account: Account, n_prompts: int, failed: Mapping[str, int]) -> Iterator[str]:
    if account.inconsistent_share > _DOUBTFUL:
        yield (
            f"{account.disagreement()}: the verdict depends on which response is shown first. Each"
            " verdict counts by itself, but Elo leaves these pairs out."
        )
    lacking = account.n_failed + account.pending
    if lacking:
        pending = [("pending", account.pending)] if account.pending else []
        why = [f"{n} {reason.replace('_', ' ')}" for reason, n in (*account.failed, *pending)]
        by = [f"{counted(n, 'response')} of {entrant}" for entrant, n in failed.items()]
        who = f" Failed: {listed(by)}." if by else ""
        yield (
            f"{lacking} of {account.planned} {account.counted} have no outcome: {listed(why)}."
            f"{who} A pair without an outcome counts for nobody and against nobody."
        )
    if 0 < n_prompts < _THIN:
        most = counted(n_prompts, "prompt")
        yield f"Thin evidence: nobody was compared on more than {most}."


def caveats_on_empty(empty: Mapping[str, int]) -> Iterator[str]:
    """Yield how many responses of each entrant are empty, of those of which some are."""
    if empty:
        by = listed([f"{counted(n, 'response')} of {entrant}" for entrant, n in empty.items()])
        yield f"Empty, and judged as an answer of no words: {by}."


def _on_fragility(board: Leaderboard, fragile: Iterable[FragilityRow]) -> Iterator[str]:
    best = board.rows[0].entrant if board.rows else None
    for fragility in fragile:
        n = None if fragility.decisive is None else len(fragility.decisive)
        if n and fragility.ahead == best and n <= max(1, _FRAGILE * fragility.n_prompts):
            without = "one prompt" if n == 1 else f"{n} prompts"
            of = fragility.n_prompts
            yield f"Without {without} of {of}, {fragility.behind} is not behind {best}."


def _on_ties(account: Account, *, drops_ties: bool) -> Iterator[str]:
    n_rated = account.decided + account.tie
    if account.tie > _MANY_TIES * n_rated:
        share = percent(account.tie / n_rated)
        elo = ", and left out of Elo" if drops_ties else ""
        yield f"{share} of the decided and tied pairs are ties: half a win for each side{elo}."


def _on_cascade(judge: str, stronger: str) -> str:
    return (
        f"{stronger} has a share of the prompts, but this page rates by {judge} alone:"
        f" `tourney project bt --truth {stronger}` rates by both."
    )


def _on_judge(judge: JudgeSettings) -> Iterator[str]:
    if judge.provider == "reference":
        yield (
            f"The offline judge, {judge.judge_id}, decided: it measures overlap of letters with the"
            " gold answer, not quality."
        )
    else:
        yield f"A single judge, {judge.judge_id}, decided; another judge might decide otherwise."
