"""Use case: check a ledger whole: its bytes, what its events mean, and what was claimed of it."""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from errno import EISDIR, ENAMETOOLONG, ENOENT
from pathlib import Path
from typing import Final, NamedTuple

from commands.errors import ConfigurationError
from commands.ports import OnProgress
from commands.runs.replay import Claim, claims_in, differences_from_claim, rebuilt_runs
from ledger.audit import Fault, audit_chain, audit_file, read_with_faults
from ledger.chain import Head, find_heads
from ledger.recorded import Recorded
from ledger.store import Ledger
from projections.consistency import ConsistencyCheck

_NO_SUCH_FILE: Final = frozenset({ENOENT, EISDIR, ENAMETOOLONG})


def noted_heads(name: str) -> tuple[Head, ...]:
    """Return the head that is spelt out, or all that a file has in it.

    Raises:
        ConfigurationError: The file cannot be read, or has none in it.
        NotAHead: There is no such file, and it is no head.
    """
    path = Path(name)
    try:
        found = find_heads(path.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        if error.errno in _NO_SUCH_FILE:
            return (Head.parse(name),)
        raise ConfigurationError([f"{path}: cannot be read: {error}"]) from error
    if not found:
        raise ConfigurationError([f"{path}: there is no checkpoint in it, as DIGEST@POSITION"])
    return found


_TOLD_EVERY: Final = 10_000  # events


class Verification(NamedTuple):
    """What was looked at, and every fault, by position."""

    head: Head
    n_claims: int  # publications whose ratings were folded again
    n_foreign: int  # publications of merged ledgers: only those can fold them again
    faults: tuple[Fault, ...]


def verify(ledger: Ledger, noted: Sequence[Head], on_progress: OnProgress) -> Verification:
    """Check everything, and stop at nothing.

    Args:
        ledger: Open for reading; what is appended meanwhile is left for the next time.
        noted: Heads that were written down elsewhere; only they can show that the end was cut
            off, an older copy put back, or every hash made anew.
        on_progress: Told how many events were checked.
    """
    head = ledger.head
    claims = claims_in(ledger, head.position)
    ours = [each for each in claims if each.is_of(ledger)]
    foreign = [each for each in claims if each.is_foreign and each not in ours]
    faults = [*audit_file(ledger), *_faults_of_heads(ledger, head, noted)]
    faults += [_unfounded(each) for each in claims if each not in (*ours, *foreign)]
    with ThreadPoolExecutor(max_workers=1) as beside:  # the hashing is done by other processes
        hashing = beside.submit(audit_chain, ledger, head, n_spared=1)
        faults += _faults_of_meaning(ledger, head, ours, on_progress)
        faults += hashing.result()
    in_order = tuple(sorted(faults, key=lambda fault: fault.position))
    return Verification(head, len(ours), len(foreign), in_order)


def _faults_of_heads(ledger: Ledger, head: Head, noted: Sequence[Head]) -> Iterator[Fault]:
    for each in noted:
        if each.position > head.position:
            yield Fault(
                head.position,
                f"the ledger ends here, and checkpoint {each} has seen more:"
                " the end was cut off, or an older copy was put back",
            )
        elif ledger.chain_at(each.position) != each.chain:
            yield Fault(each.position, f"checkpoint {each} names another history than this")


def _unfounded(claim: Claim) -> Fault:
    publication = claim.ratings.publication
    head = Head(publication.as_of, publication.head)
    return Fault(claim.position, f"it rates the history {head}, which this ledger does not hold")


def _faults_of_meaning(
    ledger: Ledger, head: Head, claims: Sequence[Claim], on_progress: OnProgress
) -> list[Fault]:
    """Check each event against those before it, and each claim against the fold, in one pass."""
    faults: list[Fault] = []
    events = _sound(ledger, head, faults, on_progress)
    for rebuilt in rebuilt_runs(events, claims):
        faults += [
            Fault(rebuilt.claim.position, f"{each.run}/{each.path} {each.why}")
            for each in differences_from_claim(rebuilt)
        ]
    deque(events, maxlen=0)  # what follows the last claim
    return faults


def _sound(
    ledger: Ledger, head: Head, faults: list[Fault], on_progress: OnProgress
) -> Iterator[Recorded]:
    """Yield the events that can be read; note what is wrong with the others, and with these."""
    meaning = ConsistencyCheck()
    last = head.position
    for each in read_with_faults(ledger, last):
        position = each.position
        if position % _TOLD_EVERY == 0 or position == last:
            on_progress("events", position, last)
        if isinstance(each, Fault):
            faults.append(each)
        else:
            if found := meaning.faults_of(each):
                faults += [Fault(position, why) for why in found]
            yield each
