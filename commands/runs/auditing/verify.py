"""Use case: verify a whole ledger: its hash chain, its events' meaning, and published ratings."""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from errno import EISDIR, ENAMETOOLONG, ENOENT
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from commands.errors import ConfigurationError
from commands.ports import OnProgress
from commands.runs.auditing.local_check import LocalCheck, LocalFindings
from commands.runs.auditing.places import KeyPlaces, Numbers
from commands.runs.auditing.replay import (
    Claim,
    Difference,
    checked_runs,
    claims_in,
    differences_from_claim,
)
from ledger.auditing.audit import (
    Redaction,
    audit_file,
    joined,
    read_with_faults,
    require_columns,
)
from ledger.auditing.ranges import AuditedRange, Fault, Tombstone, audited_ranges
from ledger.chain import Head, find_heads
from ledger.events.responses import ResponseGenerated
from ledger.events.values import type_name
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
        found = find_heads(path.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        if error.errno in _NO_SUCH_FILE:
            return (Head.parse(name),)
        raise ConfigurationError([f"{path}: cannot be read: {error}"]) from error
    if not found:
        raise ConfigurationError([f"{path}: it holds no head hash, such as DIGEST@POSITION"])
    return found


class Verification(NamedTuple):
    """What was checked, and every fault, by position."""

    head: Head
    n_claims: int  # publications whose files were rebuilt
    n_foreign: int  # publications of merged ledgers, which only those can rebuild
    faults: tuple[Fault, ...]
    redactions: tuple[Redaction, ...] = ()
    unmade: tuple[Difference, ...] = ()  # published files that held texts which were redacted since


def verify(ledger: Ledger, noted: Sequence[Head], on_progress: OnProgress) -> Verification:
    """Check everything, without stopping at the first fault.

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
    ours = [each for each in claims if each.is_of(ledger)]
    foreign = [each for each in claims if each.is_foreign and each not in ours]
    faults = [*_faults_of_heads(ledger, head, noted)]
    faults += [_unfounded(each) for each in claims if each not in (*ours, *foreign)]
    with ThreadPoolExecutor(max_workers=1) as beside:
        file_audit = beside.submit(_audit_file, ledger)
        ranges = [*_ranges(ledger, head, [each.as_of for each in ours], on_progress)]
        faults = [*file_audit.result(), *faults]
    chain = joined(ledger, head, [found for each in ranges for found in each.found])
    found = _faults_of_meaning(ledger, head, ours, ranges)
    unmade = tuple(each for each in found if isinstance(each, Difference))
    faults += [*chain.faults, *(each for each in found if isinstance(each, Fault))]
    in_order = tuple(sorted(faults, key=lambda fault: fault.position))
    return Verification(head, len(ours), len(foreign), in_order, chain.redactions, unmade)


def _audit_file(ledger: Ledger) -> Sequence[Fault]:
    """Audit the file on a connection of its own, so that events can be read meanwhile."""
    if not ledger.path.exists():  # it is in memory
        return [*audit_file(ledger)]
    with Ledger.read_only(ledger.path) as again:
        return [*audit_file(again)]


def _ranges(
    ledger: Ledger, head: Head, stops: Sequence[int], on_progress: OnProgress
) -> Iterator[AuditedRange[LocalFindings]]:
    """Audit the chain, and check each event against those before it in its range."""
    for each in audited_ranges(ledger, head, partial(LocalCheck, stops)):
        on_progress("events", each.last, head.position)
        yield each


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


def _faults_of_meaning(
    ledger: Ledger,
    head: Head,
    claims: Sequence[Claim],
    ranges: Sequence[AuditedRange[LocalFindings]],
) -> Sequence[Fault | Difference]:
    """Check doubtful events against those before them, and each claim against the fold.

    Returns:
        The faults, and the differences that are none.
    """
    faults: list[Fault] = []
    differences: list[Fault | Difference] = []
    local = [each.result for each in ranges if each.result]
    places = KeyPlaces.of(each.notes for each in local)
    if _are_found_by_key(ranges):
        stops = np.array([each.as_of for each in claims], dtype=np.uint64)
        doubtful = np.unique(np.concatenate([stops, *(each.doubtful for each in local)]))
        again = np.union1d(doubtful, places.to_compare(doubtful))
    else:
        again = np.arange(1, head.position + 1, dtype=np.uint64)
    events = _sound(ledger, again, faults)
    for checked in checked_runs(ledger, events, claims, places):
        differences += [
            Fault(checked.claim.position, f"{each.run}/{each.path} {each.why}")
            if each.is_fault
            else each
            for each in differences_from_claim(*checked)
        ]
    deque(events, maxlen=0)  # what follows the last claim
    return [*faults, *differences]


_RESPONSE: Final = type_name(ResponseGenerated)


def _are_found_by_key(ranges: Sequence[AuditedRange[LocalFindings]]) -> bool:
    """Say whether the keys tell which events belong together.

    Not where some cannot be read, nor where a response is redacted: what was asked about it is
    found by its prompt.
    """
    found = [each for audited in ranges for each in audited.found]
    redacted = {each.type for each in found if isinstance(each, Tombstone)}
    return all(each.result for each in ranges) and _RESPONSE not in redacted


def _sound(ledger: Ledger, positions: Numbers, faults: list[Fault]) -> Iterator[Recorded]:
    """Yield the events at some positions that can be read; collect the faults of all."""
    meaning = ConsistencyCheck()
    for after, last in _runs_of(positions):
        for each in read_with_faults(ledger, last, after=after):
            if isinstance(each, Fault):
                faults.append(each)
            else:
                found = meaning.faults_of(each.event, each.stream, is_redacted=each.redacted)
                faults += [Fault(each.position, why) for why in found]
                yield each


def _runs_of(positions: Numbers) -> Iterator[tuple[int, int]]:
    """Yield runs of consecutive positions, each as the position before it and its last."""
    edges = np.flatnonzero(np.diff(positions) != 1) + 1
    for group in np.split(positions, edges):
        if len(group):
            yield int(group[0]) - 1, int(group[-1])
