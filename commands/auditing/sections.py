"""The files of published runs, made again as a ledger is gone through, and never whole in memory.

Of a tournament's events, those of responses, queries and pairs hold its texts, and are most of a
ledger. Their positions are noted by key; a run is made a section of its bank at a time, each an
ordinary state with the whole bank, by which pairs and orders are drawn, that knows of some prompts
the events with their keys.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from immutables import Map

from ledger.events import judging
from ledger.events.ratings import Publication
from ledger.events.registration import JudgeSettings
from ledger.events.registry import Event
from ledger.events.responses import Followed, ResponseFailed, ResponseGenerated
from ledger.identity import Digest, Dimension, PromptId, StreamId, digest_of_bytes
from ledger.recorded import Recorded
from projections.artifacts.files import Pieces, line_files, rating_files
from projections.artifacts.results import (
    SettledPairs,
    published_comparisons,
    rated_run,
    settlements_of,
)
from projections.battles.columns import Battles, joined, without_slot_effect
from projections.tournament.folding import advance, with_answers
from projections.tournament.matches import keep_matches, keys_of, planned_responses
from projections.tournament.settlement import by_dimension
from projections.tournament.state import Tournament

PROMPTS_AT_ONCE: Final = 100
ReadAt: TypeAlias = Callable[[Iterable[int]], Iterable[Recorded]]
"""Returns the events at some positions, in order."""

_FOUND_BY_KEY: Final = (
    ResponseGenerated,
    judging.JudgeQuerySubmitted,
    judging.VerdictReceived,
    judging.PairReconciled,
)
_N_NOTED: Final = 16  # characters of a key: that two share them is rare, and does no harm


class KeyPlaces:
    """The positions of what settles pairs, by the key of a response or query."""

    def __init__(self) -> None:
        self._places: defaultdict[str, list[int]] = defaultdict(list)

    def note(self, events: Iterable[Recorded]) -> None:
        """Take note of more events."""
        for event in events:
            for key in _keys_in(event.event):
                self._places[key[:_N_NOTED]].append(event.position)

    def positions(self, keys: Iterable[Digest]) -> list[int]:
        """Return the positions of the events with some keys, and perhaps of a few others."""
        found = (self._places.get(key[:_N_NOTED], ()) for key in keys)
        return sorted({position for places in found for position in places})


def _keys_in(event: Event) -> Sequence[Digest]:
    match event:
        case ResponseGenerated(follows=Followed(answer=earlier)):  # where that was redacted
            return event.response_key, earlier
        case ResponseGenerated() | ResponseFailed():
            return (event.response_key,)
        case judging.VerdictReceived() | judging.JudgeQueryFailed():
            return (event.query_key,)
        case judging.PairReconciled():
            return (event.forward,)
        case _:
            return ()


class SectionedTournament:
    """A tournament while its events are folded, and its sections as of the last of them."""

    def __init__(
        self,
        stream: StreamId,
        read_at: ReadAt,
        places: KeyPlaces,
        *,
        prompts_at_once: int = PROMPTS_AT_ONCE,
    ) -> None:
        """Begin before the first event.

        Args:
            stream: The tournament.
            read_at: Of its ledger.
            places: Of all that was folded, in any tournament.
            prompts_at_once: How many prompts a section has.
        """
        self.state = Tournament(stream)  # without what is found by key
        self._read_at, self._places = read_at, places
        self._prompts_at_once = prompts_at_once

    def advance(self, events: Sequence[Recorded]) -> None:
        """Fold more events."""
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

    def _needed(self, events: Sequence[Recorded]) -> Sequence[Recorded]:
        """Leave out what is found by key: of that only the last counts, as the newest event.

        But once a response is redacted, outcomes and queries are looked for by its prompt.
        """
        if self.state.redactions.responses or any(event.redacted for event in events):
            return events
        last = {(type(event.event), event.stream): event.position for event in events}
        return [
            event
            for event in events
            if not isinstance(event.event, _FOUND_BY_KEY)
            or last[type(event.event), event.stream] == event.position
        ]

    def digests(self, publication: Publication) -> dict[str, Digest]:
        """Return the digest of each file of a run.

        Raises:
            LookupError: Its terms name something that is not there.
        """
        terms, judge = publication.terms, self.state.judge(publication.terms.judge)
        nothing = SettledPairs(self.state, judge, by_dimension(self.state, ()))
        hashes = {path: hashlib.sha256() for path in line_files(nothing)}
        parts: defaultdict[Dimension, list[Battles]] = defaultdict(list)
        for prompts in self._divided(terms.prompts):
            lines, comparisons = self.section(publication, prompts)
            for path, pieces in lines.items():
                for piece in pieces:
                    hashes[path].update(piece)
            for dimension, battles in comparisons.items():
                parts[dimension].append(battles)
        same = self.state.same_texts if terms.rated_by == "verdicts" else {}
        compared = {  # what the slot gave is what all sections say, not each
            dimension: without_slot_effect(joined(each)).grouped(same)
            for dimension, each in parts.items()
        }
        files = rating_files(rated_run(self.state, publication, judge, compared))
        whole = {path: digest_of_bytes(content) for path, content in files.items()}
        return whole | {path: Digest(each.hexdigest()) for path, each in hashes.items()}

    def _divided(self, prompts: Collection[PromptId]) -> Iterator[frozenset[PromptId]]:
        """Yield the prompts some at a time, in bank order; at least once."""
        chosen = frozenset(prompts)
        ids = [prompt.prompt_id for prompt in self.state.bank if prompt.prompt_id in chosen]
        for start in range(0, max(1, len(ids)), self._prompts_at_once):
            yield frozenset(ids[start : start + self._prompts_at_once])

    def section(
        self, publication: Publication, prompts: frozenset[PromptId]
    ) -> tuple[Mapping[str, Pieces], Mapping[Dimension, Battles]]:
        """Return what some prompts add to the files of a run, by path, and to its ratings.

        Raises:
            LookupError: Its terms name something that is not there.
        """
        terms = publication.terms
        judge = self.state.judge(terms.judge)
        state = self._judged(prompts, judge)
        groups = settlements_of(state, prompts, judge, terms)
        comparisons = published_comparisons(state, judge, groups, terms)
        return line_files(SettledPairs(state, judge, groups)), comparisons

    def _judged(self, prompts: frozenset[PromptId], judge: JudgeSettings) -> Tournament:
        """Return a state with everything that settles the pairings of some prompts."""
        answered, cells = self.state, planned_responses(self.state, prompts)
        while cells:  # an answer may name the next of its conversation
            answered = self._with_events(answered, (cell.response_key for cell in cells))
            several = {cell.prompt.prompt_id for cell in cells if not cell.is_last}
            before = {cell.keys for cell in cells}
            later = planned_responses(answered, several)
            cells = tuple(cell for cell in later if cell.keys not in before)
        keys = {*keys_of(answered, prompts, judge)}
        about_redacted = answered.redactions.asked.items()
        keys |= {key for key, sent in about_redacted if sent.prompt_id in prompts}
        judged = self._with_events(answered, keys)
        keep_matches(answered, judged)
        return judged

    def _with_events(self, state: Tournament, keys: Iterable[Digest]) -> Tournament:
        return with_answers(state, self._read_at(self._places.positions(keys)))
