"""A tournament in sections of its bank, so that not all of its texts are in memory at once.

Its events are read once, to note where those with a key are. A section is an ordinary state whose
bank is some of the prompts, folded from the events with their keys.
"""

import hashlib
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Final

from immutables import Map

from commands.runs.auditing.places import KeyPlaces
from commands.runs.auditing.section_workers import SectionMaker, section_workers
from ledger.events import judging
from ledger.events.ratings import Publication
from ledger.events.responses import ResponseGenerated
from ledger.identity import Digest, Dimension, PromptId, StreamId, digest_of_bytes
from ledger.recorded import Recorded
from ledger.store import Ledger
from projections.artifacts.files import rating_files
from projections.artifacts.lines import line_files
from projections.artifacts.results import BankSection, rated_run
from projections.battles.comparisons import Comparisons, joined
from projections.tournament.folding import advance
from projections.tournament.settlement import by_dimension
from projections.tournament.state import Tournament

PROMPTS_AT_ONCE: Final = 100
_FOUND_BY_KEY: Final = (
    ResponseGenerated,
    judging.JudgeQuerySubmitted,
    judging.VerdictReceived,
    judging.PairReconciled,
)


class SectionedTournament:
    """A tournament while its events are folded, and its sections as of the last of them."""

    def __init__(
        self,
        stream: StreamId,
        ledger: Ledger,
        *,
        prompts_at_once: int = PROMPTS_AT_ONCE,
    ) -> None:
        """Begin before the first event.

        Args:
            stream: The tournament.
            ledger: Where it is.
            prompts_at_once: How many prompts a section has.
        """
        self.state = Tournament(stream)  # without what is found by key
        self._ledger = ledger
        self._prompts_at_once = prompts_at_once

    def advance(self, events: Iterable[Recorded]) -> None:
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

    def digests(self, publication: Publication, places: KeyPlaces) -> dict[str, Digest]:
        """Return the digest of each file of a run.

        Args:
            publication: Of the run.
            places: Where the events with a key are.

        Raises:
            LookupError: Its terms name something that is not there.
        """
        terms, judge = publication.terms, self.state.judge(publication.terms.judge)
        nothing = BankSection(self.state, judge, by_dimension(self.state, ()))
        hashes = {path: hashlib.sha256() for path in line_files(nothing)}
        parts: defaultdict[Dimension, list[Comparisons]] = defaultdict(list)
        found_by_key = places.found_by_key(publication.as_of)
        maker = SectionMaker(self.state, judge, terms, found_by_key)
        divided = [*self._divided(terms.prompts)]
        with section_workers(maker, self._ledger, len(divided)) as workers:
            for section in workers.sections(divided):
                for path, pieces in section.lines.items():
                    deque(map(hashes[path].update, pieces), maxlen=0)  # very many, so no loop
                for dimension, comparisons in section.comparisons.items():
                    parts[dimension].append(comparisons)
            compared = {dimension: joined(each) for dimension, each in parts.items()}
            files = rating_files(rated_run(self.state, publication, judge, compared, workers.start))
        whole = {path: digest_of_bytes(content) for path, content in files.items()}
        return whole | {path: Digest(each.hexdigest()) for path, each in hashes.items()}

    def _divided(self, prompts: Collection[PromptId]) -> Iterator[frozenset[PromptId]]:
        """Yield the prompts some at a time, in bank order; at least once."""
        chosen = frozenset(prompts)
        ids = [each.prompt_id for each in self.state.bank if each.prompt_id in chosen]
        for start in range(0, max(1, len(ids)), self._prompts_at_once):
            yield frozenset(ids[start : start + self._prompts_at_once])
