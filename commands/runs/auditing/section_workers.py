"""Make the sections of a run, what some prompts add to its files: here and in other processes."""

import gc
import os
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import count, islice
from multiprocessing import get_context
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import msgspec

from commands.runs.auditing.places import KeyPlaces
from ledger.events.ratings import PublicationTerms
from ledger.events.registration import JudgeSettings
from ledger.identity import Digest, Dimension, PromptId
from ledger.recorded import Recorded
from ledger.store import Ledger
from projections.artifacts.lines import Pieces, line_files
from projections.artifacts.results import (
    BankSection,
    Parameters,
    Result,
    published_comparisons,
    settlements_of,
)
from projections.battles.comparisons import Comparisons
from projections.tournament.folding import with_answers
from projections.tournament.matches import keep_matches, known_matches, planned_responses
from projections.tournament.state import Tournament

ReadAt: TypeAlias = Callable[[Iterable[int]], Iterator[Recorded]]
_FEW: Final = 8  # sections: they are made before another process has begun
_AHEAD: Final = 2  # sections that another process is making, or will make next


class RunSection(NamedTuple):
    """What some prompts add to the files of a run, and to its ratings."""

    lines: dict[str, Pieces]  # by path
    comparisons: dict[Dimension, Comparisons]


@dataclass(frozen=True)
class SectionMaker:
    """Makes sections of a run, each of the events that are found by its keys.

    Attributes:
        state: The tournament, without what is found by key.
        judge: Whose verdicts count.
        terms: Of the run.
        places: Where the events with a key are.
    """

    state: Tournament
    judge: JudgeSettings
    terms: PublicationTerms
    places: KeyPlaces

    def section(self, prompts: frozenset[PromptId], read_at: ReadAt) -> RunSection:
        """Return the section of some prompts.

        Raises:
            LookupError: The terms of the run name something that is not there.
        """
        state = self._judged(prompts, read_at)
        groups = settlements_of(state, prompts, self.judge, self.terms)
        comparisons = published_comparisons(groups, self.terms)
        return RunSection(line_files(BankSection(state, self.judge, groups)), comparisons)

    def _judged(self, prompts: frozenset[PromptId], read_at: ReadAt) -> Tournament:
        """Return a state with everything that settles the pairings of some prompts."""
        asked = self._with_bank(prompts)
        cells = planned_responses(asked, prompts)
        answered = self._with_events(asked, (each.response_key for each in cells), read_at)
        matches = [match for _, match in known_matches(answered, prompts, self.judge) if match]
        keys = (key for match in matches for _, key in match.keys)
        judged = self._with_events(answered, keys, read_at)
        keep_matches(answered, judged)
        return judged

    def _with_bank(self, prompts: Collection[PromptId]) -> Tournament:
        """Return a state of which some prompts are the bank."""
        opening = self.state.opening
        if opening is None:
            return self.state
        found = sorted(each for prompt in prompts for each in self._places_in_bank[prompt])
        bank = tuple(opening.prompts[place] for place in found)
        return replace(self.state, opening=msgspec.structs.replace(opening, prompts=bank))

    @cached_property
    def _places_in_bank(self) -> Mapping[str, Sequence[int]]:
        """Where each prompt is in the bank: to look for some each time would take ever longer."""
        places = defaultdict[str, list[int]](list)
        for place, each in enumerate(self.state.opening.prompts if self.state.opening else ()):
            places[each.label].append(place)
        return places

    def _with_events(
        self, state: Tournament, keys: Iterable[Digest], read_at: ReadAt
    ) -> Tournament:
        return with_answers(state, read_at(self.places.positions(keys)))


class SectionWorkers:
    """Make the sections of a run, then its ratings, in this process and perhaps in others."""

    def __init__(
        self, maker: SectionMaker, ledger: Ledger, others: Executor, n_others: int
    ) -> None:
        self._maker, self._ledger = maker, ledger
        self._others, self._n_others = others, n_others
        self._turns = count()

    def sections(self, divided: Iterable[frozenset[PromptId]]) -> Iterator[RunSection]:
        """Yield the section of each part of a bank, in order; only a few are in memory.

        Other processes always have some to make; this one makes one while it waits for the next.

        Raises:
            LookupError: The terms of the run name something that is not there.
        """
        coming = iter(divided)
        made = deque[Future[RunSection]]()
        while True:
            n_wanted = _AHEAD * self._n_others - sum(not each.done() for each in made)
            made.extend(
                self._others.submit(_section_apart, each)
                for each in islice(coming, max(0, n_wanted))
            )
            is_next_made = bool(made) and made[0].done()
            prompts = None if is_next_made else next(coming, None)
            if prompts is not None:
                made.append(_done(self._maker.section(prompts, self._ledger.at)))
            elif made:
                yield made.popleft().result()
            else:
                return

    def start(
        self,
        compute: Callable[Parameters, Result],
        /,
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Callable[[], Result]:
        """Start a computation in each process in turn; return what returns its result."""
        if next(self._turns) % (1 + self._n_others) == 0:  # first: others work meanwhile
            return partial(compute, *args, **kwargs)
        return self._others.submit(compute, *args, **kwargs).result


def _done(section: RunSection) -> Future[RunSection]:
    future = Future[RunSection]()
    future.set_result(section)
    return future


@contextmanager
def section_workers(
    maker: SectionMaker, ledger: Ledger, n_sections: int, *, few: int = _FEW
) -> Iterator[SectionWorkers]:
    """Yield the workers of a run: all cores for many sections, else this process alone."""
    is_long = n_sections > few and ledger.path.exists()  # else it is in memory
    n_others = (os.cpu_count() or 1) - 1 if is_long else 0
    context, facts = get_context("spawn"), (ledger.path, maker)
    with ProcessPoolExecutor(n_others or 1, context, _begin, facts) as others:
        yield SectionWorkers(maker, ledger, others, n_others)  # a process begins when it has work


_WORKING_ON: Final[list[tuple[Ledger, SectionMaker]]] = []  # in another process


def _begin(path: Path, maker: SectionMaker) -> None:
    gc.disable()  # sections leave no garbage, and much would be gone through
    _WORKING_ON.append((Ledger.read_only(path), maker))


def _section_apart(prompts: frozenset[PromptId]) -> RunSection:
    [(ledger, maker)] = _WORKING_ON
    return maker.section(prompts, ledger.at)
