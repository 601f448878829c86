"""Use case: verify a whole ledger: its hash chain, its events' meaning, and published ratings."""

from collections.abc import Iterator, Sequence
from errno import EISDIR, ENAMETOOLONG, ENOENT
from operator import attrgetter
from pathlib import Path
from typing import Final, NamedTuple

from commands.auditing.replay import Claim, Difference, claims_in, differences_from_claim
from commands.auditing.sections import KeyPlaces, SectionedTournament
from commands.errors import ConfigurationError
from commands.ports import OnProgress
from ledger.auditing.audit import ChainAuditor, Fault, Redaction, audit_file, require_columns
from ledger.chain import Head, find_heads
from ledger.recorded import Recorded
from ledger.store import Ledger
from projections.event_consistency import ConsistencyCheck

_NO_SUCH_FILE: Final = frozenset({ENOENT, EISDIR, ENAMETOOLONG})


def noted_heads(name: str) -> tuple[Head, ...]:
    """Return the head hash that is given, or all of those in a file.

    Raises:
        ConfigurationError: The file cannot be read, or has no head hash.
        NotAHead: It is neither a file nor a head hash.
    """
    path = Path(name)
    try:
        heads = find_heads(path.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        if error.errno in _NO_SUCH_FILE:
            return (Head.parse(name),)
        raise ConfigurationError([f"{path}: cannot be read: {error}"]) from error
    if not heads:
        raise ConfigurationError([f"{path}: it holds no head hash, such as DIGEST@POSITION"])
    return heads


class Verification(NamedTuple):
    """What was checked, and every fault, by position."""

    head: Head
    n_claims: int  # publications whose files were rebuilt
    n_foreign: int  # publications of merged ledgers, which only those can rebuild
    faults: tuple[Fault, ...]
    redactions: tuple[Redaction, ...] = ()
    unmade: tuple[Difference, ...] = ()  # published files that held texts which were redacted since


def verify(ledger: Ledger, noted: Sequence[Head], on_progress: OnProgress) -> Verification:
    """Check everything, without stopping at the first fault; each event is read once.

    Args:
        ledger: Open for reading; events appended meanwhile are not checked.
        noted: Head hashes that were kept elsewhere. Only they can show that the end was cut off,
            an older copy was restored, or all hashes were computed anew.
        on_progress: Hears how many events were checked.

    Raises:
        CannotRead: A column is missing, so there is nothing to check.
    """
    require_columns(ledger)
    head = ledger.head
    claims = claims_in(ledger, head.position)
    ours = [claim for claim in claims if claim.is_of(ledger)]
    foreign = [claim for claim in claims if claim.is_foreign and claim not in ours]
    faults = [*audit_file(ledger), *_faults_of_heads(ledger, head, noted)]
    faults += [_unfounded(claim) for claim in claims if claim not in (*ours, *foreign)]
    auditor, meaning, runs = ChainAuditor(ledger, head), ConsistencyCheck(), _Runs(ledger, ours)
    said: list[Fault] = []
    for page in auditor.pages():
        said += [fault for fault in page if isinstance(fault, Fault)]
        events = [recorded for recorded in page if isinstance(recorded, Recorded)]
        said += [fault for event in events for fault in _faults_of_meaning(meaning, event)]
        runs.advance(events)
        on_progress("events", page[-1].position, head.position)
    chain, differences = auditor.result(), runs.finish()
    faults += [
        *chain.faults,
        *said,
        *(difference for difference in differences if isinstance(difference, Fault)),
    ]
    in_order = tuple(sorted(faults, key=attrgetter("position")))
    unmade = tuple(difference for difference in differences if isinstance(difference, Difference))
    return Verification(head, len(ours), len(foreign), in_order, chain.redactions, unmade)


def _faults_of_heads(ledger: Ledger, head: Head, noted: Sequence[Head]) -> Iterator[Fault]:
    for each in noted:
        if each.position > head.position:
            yield Fault(
                head.position,
                f"the ledger ends here, before the kept head {each}: the end was cut off, or an"
                " older copy was restored",
            )
        elif ledger.chain_at(each.position) != each.chain:
            yield Fault(each.position, f"the kept head {each} is of another history")


def _unfounded(claim: Claim) -> Fault:
    publication = claim.ratings.publication
    head = Head(publication.as_of, publication.head)
    return Fault(claim.position, f"it rates the history {head}, which this ledger does not have")


def _faults_of_meaning(meaning: ConsistencyCheck, each: Recorded) -> Iterator[Fault]:
    for why in meaning.faults_of(each.event, each.stream, is_redacted=each.redacted):
        yield Fault(each.position, why)


class _Runs:
    """The published runs, each made again once all that it rates was read."""

    def __init__(self, ledger: Ledger, claims: Sequence[Claim]) -> None:
        places = KeyPlaces()
        self._tournaments = {
            claim.stream: SectionedTournament(claim.stream, ledger.at, places) for claim in claims
        }
        self._places = places
        self._open = sorted(claims, key=attrgetter("as_of"), reverse=True)
        self._found: list[Fault | Difference] = []

    def advance(self, events: Sequence[Recorded]) -> None:
        """Fold more events, and compare the runs that rate no later ones."""
        while self._open and events and self._open[-1].as_of <= events[-1].position:
            claim = self._open.pop()
            self._fold([event for event in events if event.position <= claim.as_of])
            events = [event for event in events if event.position > claim.as_of]
            self._compare(claim)
        if self._open:
            self._fold(events)

    def finish(self) -> Sequence[Fault | Difference]:
        """Return all differences, those of runs that rate what cannot be read, too."""
        while self._open:
            self._compare(self._open.pop())
        return self._found

    def _fold(self, events: Sequence[Recorded]) -> None:
        self._places.note(events)
        for tournament in self._tournaments.values():
            tournament.advance(events)

    def _compare(self, claim: Claim) -> None:
        tournament = self._tournaments[claim.stream]
        try:
            digests = tournament.digests(claim.ratings.publication)
        except LookupError:  # its terms name something that is not there
            digests = {}
        redacted = tournament.state.redactions.positions if digests else ()
        for difference in differences_from_claim(claim, digests, redacted):
            why = f"{difference.run}/{difference.path} {difference.why}"
            self._found.append(Fault(claim.position, why) if difference.is_fault else difference)
