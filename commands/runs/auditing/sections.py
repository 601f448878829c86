"""A tournament in sections of its bank, so that not all of its texts are in memory at once.

Its events are gone through once, to note where those with a key are. A section is an ordinary state
in which some prompts are the whole bank, folded again from the events with their keys.
"""

import hashlib
from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from typing import Final, TypeAlias

import msgspec
import numpy as np
from immutables import Map
from numpy.typing import NDArray

from ledger.events import judging
from ledger.events.ratings import Publication
from ledger.events.registration import JudgeSettings
from ledger.events.responses import ResponseFailed, ResponseGenerated
from ledger.identity import Digest, Dimension, PromptId, StreamId, digest_of_bytes
from ledger.recorded import Recorded
from projections.artifacts.files import line_files, rating_files
from projections.artifacts.results import BankSection, rated_run, settlements_of
from projections.battles.comparisons import Comparisons, comparisons_of, joined
from projections.tournament.folding import advance
from projections.tournament.matches import keep_matches, known_matches, planned_responses
from projections.tournament.settlement import by_dimension
from projections.tournament.state import Tournament

PROMPTS_AT_ONCE: Final = 100
_N_HEX: Final = 16  # of a key are noted: that two share them is rare, and does no harm
_FOUND_BY_KEY: Final = (
    ResponseGenerated,
    judging.JudgeQuerySubmitted,
    judging.VerdictReceived,
    judging.PairReconciled,
)
ReadAt: TypeAlias = Callable[[Iterable[int]], Iterator[Recorded]]


class KeyPlaces:
    """The positions of the events with the key of a response or of a query."""

    def __init__(self) -> None:
        self._keys, self._positions = array("Q"), array("Q")
        self._n_sorted = 0
        self._sorted = self._in_order()

    def note(self, events: Iterable[Recorded]) -> None:
        """Take note of more events."""
        for recorded in events:
            match recorded.event:
                case ResponseGenerated(response_key=key) | ResponseFailed(response_key=key):
                    self._add(key, recorded.position)
                case (
                    judging.VerdictReceived(query_key=key) | judging.JudgeQueryFailed(query_key=key)
                ):
                    self._add(key, recorded.position)
                case judging.PairReconciled(forward=key):
                    self._add(key, recorded.position)
                case _:
                    pass

    def _add(self, key: Digest, position: int) -> None:
        self._keys.append(int(key[:_N_HEX], 16))
        self._positions.append(position)

    def positions(self, keys: Iterable[Digest]) -> list[int]:
        """Return the positions of the events with some keys, and perhaps of a few others."""
        if self._n_sorted < len(self._keys):
            self._sorted, self._n_sorted = self._in_order(), len(self._keys)
        noted, positions = self._sorted
        sought = np.array([int(key[:_N_HEX], 16) for key in keys], dtype=np.uint64)
        first, last = (noted.searchsorted(sought, side) for side in ("left", "right"))
        found = {at for a, b in zip(first, last, strict=True) for at in positions[a:b].tolist()}
        return sorted(found)

    def _in_order(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        keys, positions = (np.array(each) for each in (self._keys, self._positions))
        order = np.argsort(keys, kind="stable")
        return keys[order], positions[order]


class SectionedTournament:
    """A tournament while its events are gone through, and its sections as of the last of them."""

    def __init__(
        self,
        stream: StreamId,
        places: KeyPlaces,
        read_at: ReadAt,
        *,
        prompts_at_once: int = PROMPTS_AT_ONCE,
    ) -> None:
        """Begin before the first event.

        Args:
            stream: The tournament.
            places: Where events with a key are: of as many as the tournament goes through.
            read_at: Returns the events at some positions, in order.
            prompts_at_once: How many prompts a section has.
        """
        self.state = Tournament(stream)  # without what is found by key
        self._places = places
        self._read_at = read_at
        self._prompts_at_once = prompts_at_once

    def advance(self, events: Iterable[Recorded]) -> None:
        """Go through more events, which are noted, too."""
        self.state = replace(
            advance(self.state, self._needed(events)),
            responses=Map(),
            response_failures=Map(),
            attempts=Map(),
            verdicts=Map(),
            scores=Map(),
            query_failures=Map(),
            useless_replies=Map(),
            outcomes=Map(),
        )

    def _needed(self, events: Iterable[Recorded]) -> Iterable[Recorded]:
        """Leave out what is found by key: of that only the last counts, as the newest event.

        But once a response is redacted, outcomes and queries are looked for by its prompt.
        """
        events = [*events]
        if self.state.redactions.responses or any(each.redacted for each in events):
            return events
        last = {(type(each.event), each.stream): each.position for each in events}
        return [
            each
            for each in events
            if not isinstance(each.event, _FOUND_BY_KEY)
            or last[type(each.event), each.stream] == each.position
        ]

    def digests(self, publication: Publication) -> dict[str, Digest]:
        """Return the digest of each file of a run.

        Raises:
            LookupError: Its terms name something that is not there.
        """
        terms, judge = publication.terms, self.state.judge(publication.terms.judge)
        nothing = BankSection(self.state, judge, by_dimension(self.state, ()))
        hashes = {path: hashlib.sha256() for path in line_files(nothing)}
        parts: defaultdict[Dimension, list[Comparisons]] = defaultdict(list)
        for prompts in self._divided(terms.prompts):
            section = self._section(prompts, judge)
            groups = settlements_of(section, prompts, judge, terms.policy)
            for path, lines in line_files(BankSection(section, judge, groups)).items():
                hashes[path].update(lines)
            for dimension, group in groups.items():
                parts[dimension].append(comparisons_of(group))
        comparisons = {dimension: joined(each) for dimension, each in parts.items()}
        rated = rated_run(self.state, publication, judge, comparisons)
        whole = {path: digest_of_bytes(content) for path, content in rating_files(rated).items()}
        return whole | {path: Digest(each.hexdigest()) for path, each in hashes.items()}

    def _divided(self, prompts: Collection[PromptId]) -> Iterator[frozenset[PromptId]]:
        """Yield the prompts some at a time, in bank order; at least once."""
        chosen = frozenset(prompts)
        ids = [each.prompt_id for each in self.state.bank if each.prompt_id in chosen]
        for start in range(0, max(1, len(ids)), self._prompts_at_once):
            yield frozenset(ids[start : start + self._prompts_at_once])

    def _section(self, prompts: frozenset[PromptId], judge: JudgeSettings) -> Tournament:
        """Return a state with everything that settles the pairings of some prompts."""
        asked = _with_bank(self.state, prompts)
        cells = planned_responses(asked, prompts)
        answered = self._with_events(asked, (each.response_key for each in cells))
        matches = [match for _, match in known_matches(answered, prompts, judge) if match]
        keys = (key for match in matches for _, key in match.keys)
        judged = self._with_events(answered, keys)
        keep_matches(answered, judged)
        return judged

    def _with_events(self, state: Tournament, keys: Iterable[Digest]) -> Tournament:
        after = advance(state, self._read_at(self._places.positions(keys)))
        return replace(after, newest=state.newest, redactions=state.redactions)


def _with_bank(state: Tournament, prompts: Collection[PromptId]) -> Tournament:
    """Return a state of which some prompts are the bank."""
    if state.opening is None:
        return state
    bank = tuple(each for each in state.opening.prompts if each.label in prompts)
    return replace(state, opening=msgspec.structs.replace(state.opening, prompts=bank))
