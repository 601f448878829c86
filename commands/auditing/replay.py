"""Use case: rebuild published runs from the events, and compare them byte for byte."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Final, NamedTuple

from commands.errors import NotFound, shortened
from ledger.auditing.audit import read_some
from ledger.events.imports import LedgerMerged
from ledger.events.judging import LookTaken
from ledger.events.ratings import RatingsPublished
from ledger.events.values import type_name
from ledger.identity import Digest, StreamId, digest_of_bytes
from ledger.recorded import Recorded
from ledger.storage.files import write_files
from ledger.store import Ledger
from projections.artifacts.files import files_of, holds_ratings, holds_texts
from projections.artifacts.results import Results, results_of
from projections.ratings.looks import decides_alike, look_now
from projections.results.columns import Column, Shown
from projections.tournament.folding import advance
from projections.tournament.state import Tournament

_PAGE: Final = 10_000  # events


class Claim(NamedTuple):
    """A publication and its position: the digests that a run's files must have."""

    position: int
    stream: StreamId
    ratings: RatingsPublished
    is_foreign: bool  # merged from another ledger

    @property
    def run(self) -> str:
        """The run's name."""
        return self.ratings.publication.run

    def may_differ(self, path: str) -> bool:
        """Return whether a file holds ratings of an earlier arithmetic."""
        return self.ratings.publication.terms.arithmetic == 1 and holds_ratings(path)

    @property
    def as_of(self) -> int:
        """The last position that the run rates."""
        return self.ratings.publication.as_of

    def is_of(self, ledger: Ledger) -> bool:
        """Return whether it rates this ledger's history, not that of a merged one."""
        return ledger.chain_at(self.as_of) == self.ratings.publication.head


class Rebuilt(NamedTuple):
    """A claim, and its files as the ledger gives them today."""

    claim: Claim
    files: Mapping[str, bytes]  # compared with the claim
    results: Results | None  # from which they are made; None: its terms name what is not there

    @property
    def redacted(self) -> Sequence[int]:
        """The positions of redacted events that it is made from."""
        return self.results.tournament.redactions.positions if self.results else ()


class Difference(NamedTuple):
    """A file of a run that differs from what the ledger gives."""

    run: Shown[str]
    path: Annotated[str, Column("File")]
    why: Annotated[str, Column("What is wrong")]
    is_fault: bool = True  # False: it held a redacted text, or ratings of an earlier arithmetic


class Replayed(NamedTuple):
    """The runs that were rebuilt, and all differences."""

    runs: tuple[str, ...]
    differences: tuple[Difference, ...]


def replay(
    ledger: Ledger,
    stream: StreamId,
    *,
    until: int | None = None,
    against: Path | None = None,
    out: Path | None = None,
) -> Replayed:
    """Rebuild published runs and looks, and compare them with what is recorded.

    With `against`, the folder of a run, only that run; `out` is a folder to write them to.

    Raises:
        NotFound: There is no such folder, or no published run with its name.
    """
    claims = _selected_claims(ledger, stream, until=until, against=against)
    differences: list[Difference] = []
    for rebuilt in rebuilt_runs(ledger.read(until=until), claims):
        digests = {path: digest_of_bytes(each) for path, each in rebuilt.files.items()}
        differences += differences_from_claim(rebuilt.claim, digests, rebuilt.redacted)
        if against is not None:
            differences += _differences_from_folder(rebuilt, against)
        if out is not None:
            write_files(out / rebuilt.claim.run, {**rebuilt.files, **_report(ledger, rebuilt)})
    if against is None:
        differences += _looks_taken_otherwise(ledger, stream, until)
    return Replayed(tuple(claim.run for claim in claims), tuple(differences))


def _looks_taken_otherwise(
    ledger: Ledger, stream: StreamId, until: int | None
) -> Iterator[Difference]:
    """Yield the looks that the verdicts before them would have decided in another way.

    A look that a merge took in is left out: it was taken elsewhere, maybe by other verdicts.
    """
    kinds = {type_name(LookTaken), type_name(LedgerMerged)}
    found = [*ledger.read(stream=stream, types=kinds, until=until)]
    state, last = Tournament(stream), 0
    for taken in found:
        look, before = taken.event, taken.position - 1
        if not isinstance(look, LookTaken) or any(_took_in(other, taken) for other in found):
            continue
        state, last = advance(state, ledger.read(after=last, until=before)), before
        if not decides_alike(look_now(state), look):
            why, is_fault = "its verdicts decide otherwise", not state.redactions.positions
            yield Difference(f"look {look.number}", "decisions", why, is_fault=is_fault)


def _selected_claims(
    ledger: Ledger, stream: StreamId, *, until: int | None, against: Path | None
) -> list[Claim]:
    if against is not None and not against.is_dir():
        raise NotFound(
            f"there is no folder {against.absolute()}; name a run's folder, which `tourney run`"
            " writes to runs/ beside the settings"
        )
    claims = [
        claim
        for claim in claims_in(ledger, ledger.head.position if until is None else until)
        if claim.stream == stream
        and claim.is_of(ledger)
        and (against is None or claim.run == against.resolve().name)
    ]
    if against is not None and not claims:
        raise NotFound(f"{against}: no run with that name was published in {ledger.path}")
    return claims


def claims_in(ledger: Ledger, until: int) -> tuple[Claim, ...]:
    """Return the publications that can be read, in order of position."""
    types = {type_name(RatingsPublished), type_name(LedgerMerged)}
    found = [recorded for recorded in read_some(ledger, types) if recorded.position <= until]
    return tuple(
        Claim(
            recorded.position,
            recorded.stream,
            recorded.event,
            any(_took_in(other, recorded) for other in found),
        )
        for recorded in found
        if isinstance(recorded.event, RatingsPublished)
    )


def _took_in(merge: Recorded, each: Recorded) -> bool:
    """Return whether a merge added an event: those stand right before the merge's own event."""
    return (
        isinstance(merge.event, LedgerMerged)
        and merge.stream == each.stream
        and merge.version - merge.event.n_taken <= each.version < merge.version
    )


def rebuilt_runs(events: Iterator[Recorded], claims: Sequence[Claim]) -> Iterator[Rebuilt]:
    """Fold the events once, and yield each claim with its files, in the order of as-of."""
    states = {claim.stream: Tournament(claim.stream) for claim in claims}
    last = 0
    for claim in sorted(claims, key=attrgetter("as_of")):
        if claim.as_of > last:
            last, coming = claim.as_of, _up_to(claim.as_of, events)
            while page := list(islice(coming, _PAGE)):
                states = {stream: advance(state, page) for stream, state in states.items()}
        yield _rebuilt(states[claim.stream], claim)


def _rebuilt(state: Tournament, claim: Claim) -> Rebuilt:
    """Return a claim with its files: none if its terms name something that is not there."""
    try:
        results = results_of(state, claim.ratings.publication)
        return Rebuilt(claim, files_of(results), results)
    except LookupError:
        return Rebuilt(claim, {}, None)


def _report(ledger: Ledger, rebuilt: Rebuilt) -> Mapping[str, bytes]:
    from commands.report.page import report_of_run  # noqa: PLC0415  # jinja2 is slow

    return {} if rebuilt.results is None else report_of_run(ledger, rebuilt.results)


def _up_to(position: int, events: Iterator[Recorded]) -> Iterator[Recorded]:
    """Yield events up to a position, and leave the rest in the iterator."""
    for recorded in events:
        yield recorded
        if recorded.position >= position:
            return


def differences_from_claim(
    claim: Claim, digests: Mapping[str, Digest], redacted: Sequence[int]
) -> Iterator[Difference]:
    """Yield the files that the events no longer give as they were published.

    Args:
        claim: The publication.
        digests: Of the files as the ledger gives them today, by path.
        redacted: The positions of redacted events.
    """
    for artifact in claim.ratings.artifacts:
        digest = digests.get(artifact.path)
        if digest is None:
            yield Difference(claim.run, artifact.path, "was published and is no longer made")
        elif digest != artifact.digest and claim.may_differ(artifact.path):
            yield Difference(claim.run, artifact.path, _EARLIER_ARITHMETIC, is_fault=False)
        elif digest != artifact.digest:
            why = "differs from what was published"
            yield _differing(claim.run, artifact.path, why, redacted)


_EARLIER_ARITHMETIC: Final = (
    "differs, which is no fault: an earlier version published it, and rounded in another way"
)


def _differing(run: str, path: str, why: str, redacted: Sequence[int]) -> Difference:
    """Return a file's difference, which is no fault if it held a text that was redacted."""
    if not redacted or not holds_texts(path):
        return Difference(run, path, why)
    why = f"{why}: texts were redacted at position {shortened([*map(str, redacted)])}"
    return Difference(run, path, why, is_fault=False)


def _differences_from_folder(rebuilt: Rebuilt, folder: Path) -> Iterator[Difference]:
    """Yield the files of a folder that are missing, or differ from what the ledger gives."""
    run = rebuilt.claim.run
    published = {artifact.path: artifact.digest for artifact in rebuilt.claim.ratings.artifacts}
    for path, content in rebuilt.files.items():
        file = folder / path
        if not file.is_file():
            yield Difference(run, path, "is missing")
        elif rebuilt.claim.may_differ(path):
            if digest_of_bytes(file.read_bytes()) != published.get(path):
                yield Difference(run, path, "differs from what was published")
        elif file.read_bytes() != content:
            why = f"differs from byte {_first_change(file, content)} on"
            yield _differing(run, path, why, rebuilt.redacted)


def _first_change(file: Path, content: bytes) -> int:
    """Return the offset, from 0, of the first byte that differs."""
    found = file.read_bytes()
    pairs = zip(found, content, strict=False)
    same = next((n for n, (a, b) in enumerate(pairs) if a != b), None)
    return min(len(found), len(content)) if same is None else same
