"""Use case: verify a whole ledger: its hash chain, its events' meaning, and published ratings."""

from collections.abc import Iterator, Sequence
from errno import EISDIR, ENAMETOOLONG, ENOENT
from operator import attrgetter
from pathlib import Path
from typing import Final, NamedTuple

from commands.auditing.replay import (
    Claim,
    Difference,
    claims_in,
    differences_of,
    rebuilt_runs,
)
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
    ours = [each for each in claims if each.is_of(ledger)]
    foreign = [each for each in claims if each.is_foreign and each not in ours]
    faults = [*audit_file(ledger), *_faults_of_heads(ledger, head, noted)]
    faults += [_unfounded(each) for each in claims if each not in (*ours, *foreign)]
    auditor, said, unmade = ChainAuditor(ledger, head), list[Fault](), list[Difference]()
    for rebuilt in rebuilt_runs(_sound_events(auditor, head, said, on_progress), ours):
        for each in differences_of(rebuilt):
            if each.is_fault:
                said.append(Fault(rebuilt.claim.position, f"{each.run}/{each.path} {each.why}"))
            else:
                unmade.append(each)
    chain = auditor.result()
    in_order = tuple(sorted([*faults, *chain.faults, *said], key=attrgetter("position")))
    return Verification(head, len(ours), len(foreign), in_order, chain.redactions, tuple(unmade))


def _sound_events(
    auditor: ChainAuditor, head: Head, said: list[Fault], on_progress: OnProgress
) -> Iterator[Recorded]:
    """Yield all events that can be read; add to `said` what is wrong with them and the others."""
    meaning = ConsistencyCheck()
    for page in auditor.pages():
        for each in page:
            if isinstance(each, Fault):
                said.append(each)
                continue
            why = meaning.faults_of(each.event, each.stream, is_redacted=each.redacted)
            said += [Fault(each.position, fault) for fault in why]
            yield each
        on_progress("events", page[-1].position, head.position)


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
