"""Use case: verify a whole ledger: its hash chain, its events' meaning, and published ratings."""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from errno import EISDIR, ENAMETOOLONG, ENOENT
from pathlib import Path
from typing import Final, NamedTuple

from commands.errors import ConfigurationError
from commands.ports import OnProgress
from commands.runs.auditing.replay import (
    Claim,
    Difference,
    checked_runs,
    claims_in,
    differences_from_claim,
)
from ledger.audit import (
    ChainAudit,
    Fault,
    Redaction,
    audit_chain,
    audit_file,
    read_with_faults,
    require_columns,
)
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
        found = find_heads(path.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        if error.errno in _NO_SUCH_FILE:
            return (Head.parse(name),)
        raise ConfigurationError([f"{path}: cannot be read: {error}"]) from error
    if not found:
        raise ConfigurationError([f"{path}: it holds no head hash, such as DIGEST@POSITION"])
    return found


_PROGRESS_EVERY: Final = 10_000  # events


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
        bytes_audit = beside.submit(_audit_bytes, ledger, head)
        found = _faults_of_meaning(ledger, head, ours, on_progress)
        faults_of_file, chain = bytes_audit.result()
    unmade = tuple(each for each in found if isinstance(each, Difference))
    faults = [*faults_of_file, *faults, *chain.faults]
    faults += [each for each in found if isinstance(each, Fault)]
    in_order = tuple(sorted(faults, key=lambda fault: fault.position))
    return Verification(head, len(ours), len(foreign), in_order, chain.redactions, unmade)


def _audit_bytes(ledger: Ledger, head: Head) -> tuple[tuple[Fault, ...], ChainAudit]:
    """Audit the chain, then the file: in other processes, and in SQLite, which runs beside Python.

    The file is audited on a connection of its own, so that events can be read meanwhile.
    """
    chain = audit_chain(ledger, head, n_spared=1)
    if not ledger.path.exists():  # it is in memory
        return tuple(audit_file(ledger)), chain
    with Ledger.read_only(ledger.path) as again:
        return tuple(audit_file(again)), chain


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
    ledger: Ledger, head: Head, claims: Sequence[Claim], on_progress: OnProgress
) -> Sequence[Fault | Difference]:
    """Check each event against those before it, and each claim against the fold, in one pass.

    Returns:
        The faults, and the differences that are none.
    """
    faults: list[Fault] = []
    differences: list[Fault | Difference] = []
    events = _sound(ledger, head, faults, on_progress)
    for checked in checked_runs(ledger, events, claims):
        differences += [
            Fault(checked.claim.position, f"{each.run}/{each.path} {each.why}")
            if each.is_fault
            else each
            for each in differences_from_claim(*checked)
        ]
    deque(events, maxlen=0)  # what follows the last claim
    return [*faults, *differences]


def _sound(
    ledger: Ledger, head: Head, faults: list[Fault], on_progress: OnProgress
) -> Iterator[Recorded]:
    """Yield the events that can be read; collect the faults of all."""
    meaning = ConsistencyCheck()
    last = head.position
    for each in read_with_faults(ledger, last):
        position = each.position
        if position % _PROGRESS_EVERY == 0 or position == last:
            on_progress("events", position, last)
        if isinstance(each, Fault):
            faults.append(each)
        else:
            if found := meaning.faults_of(each):
                faults += [Fault(position, why) for why in found]
            yield each
