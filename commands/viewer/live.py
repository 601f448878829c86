"""The data that all pages show, computed once for each head of the ledger."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Final, NamedTuple, cast

from commands.reading.judged_tournament import JudgedTournament
from commands.reading.resolve import judge_of
from commands.reading.rows import results_now
from commands.report.answers import marked_prompts
from commands.report.page import content_of
from commands.report.subject import Subject
from commands.viewer.battle_index import BattleIndex, index_of
from ledger.chain import Head
from ledger.errors import TourneyError
from ledger.events.judging import VerdictReceived
from ledger.identity import Digest, Dimension, StreamId
from ledger.recorded import Recorded
from projections.evaluations.metrics import metrics_of
from projections.evaluations.samples import ITEMS, Items
from projections.evaluations.state import Evaluations, evaluations_of
from projections.fold import Projection, fold
from projections.results.ratings import FragilityRow
from projections.tournament.compared import Account
from projections.tournament.folding import tournament_of
from projections.tournament.matches import keep_matches
from projections.tournament.remaining import response_counts
from projections.tournament.settlement import Settlement, account_of
from projections.tournament.spend import Spend, spend_of
from projections.tournament.state import Tournament

_PAGE: Final = 5_000  # events that are held at a time
_NEWEST: Final = 40  # verdicts, of which some belong to one battle
_SHOWN: Final = 10  # battles


@dataclass(frozen=True)
class LiveReading:
    """A tournament, its spend, its evaluations, and its newest verdicts, from one reading."""

    tournament: Tournament
    spend: Spend
    evaluations: Evaluations
    items: Items
    newest: tuple[Digest, ...] = ()  # queries, the last answered first


def live_reading_of(stream: StreamId) -> Projection[LiveReading]:
    """Return the projection to all that the pages show."""
    initial = LiveReading(
        tournament_of(stream).initial,
        spend_of(stream).initial,
        evaluations_of(stream).initial,
        ITEMS.initial,
    )
    return Projection(initial, _advance)


def _advance(state: LiveReading, events: Iterable[Recorded]) -> LiveReading:
    stream, coming = state.tournament.stream, iter(events)
    while page := [*islice(coming, _PAGE)]:
        answered = [
            recorded.event.query_key
            for recorded in reversed(page)
            if recorded.stream == stream and isinstance(recorded.event, VerdictReceived)
        ]
        state = LiveReading(
            fold(tournament_of(stream), page, state.tournament),
            fold(spend_of(stream), page, state.spend),
            fold(evaluations_of(stream), page, state.evaluations),
            fold(ITEMS, page, state.items),
            (*answered, *state.newest)[:_NEWEST],
        )
    return state


class Step(NamedTuple):
    """How far something has come."""

    what: str
    n_done: int
    n_planned: int
    detail: str


@dataclass(frozen=True, eq=False)
class LiveView:
    """What the pages show at one head; the report's content is None if nobody can be rated."""

    head: Head
    reading: LiveReading
    source: JudgedTournament
    index: BattleIndex
    content: dict[str, object] | None
    why_not: str  # nobody can be rated
    steps: tuple[Step, ...]
    newest: tuple[int, ...]  # places of the battles that were judged last
    marked: Mapping[str, frozenset[str]]  # prompts that are worth a look, by why


def view_of(
    reading: LiveReading, head: Head, ledger: Path, before: LiveView | None = None
) -> LiveView:
    """Compute what the pages show; what is as it was before is not computed again.

    Raises:
        ConfigurationError: No judge is registered yet.
    """
    state = reading.tournament
    if before is not None:
        keep_matches(before.reading.tournament, state)
    source = JudgedTournament(state, judge_of(state, None), ledger, head.position, is_live=True)
    index = index_of(state, chain.from_iterable(source.settlements.values()), source.judge)
    content, why_not = None, ""
    try:
        runs = tuple(map(metrics_of, reading.evaluations.runs))
        subject = Subject(
            results_now(source, head), reading.spend, runs, reading.items, is_run=False
        )
        content = content_of(subject, "none")
    except TourneyError as error:
        why_not = str(error)
    return LiveView(
        head,
        reading,
        source,
        index,
        content,
        why_not,
        tuple(_steps(state, source.settlements)),
        tuple(_newest(index, reading.newest)),
        marked_prompts(index.disputed, _fragile(content)),
    )


def _fragile(content: Mapping[str, object] | None) -> list[FragilityRow]:
    return cast("list[FragilityRow]", content["fragile"]) if content else []


def _steps(state: Tournament, groups: Mapping[Dimension, Sequence[Settlement]]) -> Iterator[Step]:
    """Yield how many responses there are, and how many pairs are settled on each dimension."""
    prompts = frozenset(prompt.prompt_id for prompt in state.bank)
    counts = response_counts(state, prompts)
    n_done, n_failed = sum(row.generated for row in counts), sum(row.failed for row in counts)
    n_planned = n_done + n_failed + sum(row.missing for row in counts)
    yield Step("responses", n_done, n_planned, f"{n_failed:,} failed" if n_failed else "")
    for dimension, group in groups.items():
        account = account_of(group)
        yield Step(
            f"pairs judged on {dimension}",
            account.planned - account.pending,
            account.planned,
            _detail(account),
        )


def _detail(account: Account) -> str:
    counts = (
        (account.decided, "decided"),
        (account.tie, "tied"),
        (account.inconsistent, "inconsistent"),
        (account.n_failed, "without a verdict"),
    )
    return ", ".join(f"{n:,} {what}" for n, what in counts if n)


def _newest(index: BattleIndex, queries: Iterable[Digest]) -> Iterator[int]:
    """Yield the places of the battles that queries are about, each once."""
    asked = {
        key: place
        for place, each in enumerate(index.battles)
        if each.match
        for _, key in each.match.keys
    }
    places = (asked[key] for key in queries if key in asked)
    yield from islice(dict.fromkeys(places), _SHOWN)
