"""What a user can put right: settings, files, models."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from traceback import extract_tb
from typing import ClassVar, Final, TypeAlias

import msgspec

from ledger.errors import TourneyError

MOST_NAMES: Final = 6  # in a sentence


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """Return "1 run", "2 runs", "3 queries"."""
    return f"{n} {noun}" if n == 1 else f"{n} {plural or f'{noun}s'}"


def joined_names(entrants: Sequence[str]) -> str:
    """Name entrants, but no crowd of them."""
    shown = ", ".join(entrants[:MOST_NAMES])
    n_more = len(entrants) - MOST_NAMES
    return shown if n_more <= 0 else f"{shown} and {n_more} more"


class ConfigurationError(TourneyError):
    """Settings or input files are wrong; every fault found is in the message."""

    exit_code: ClassVar[int] = 2

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)


class WeightsError(TourneyError):
    """Model weights, a tokenizer or an adapter cannot be loaded as asked."""

    exit_code: ClassVar[int] = 2

    def __init__(self, path: Path, why: str, remedy: str) -> None:
        super().__init__(f"{path}: {why}; {remedy}")
        self.path, self.why = path, why


class MissingExtra(TourneyError):
    """A command needs packages that are not installed."""

    exit_code: ClassVar[int] = 2

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"package {package!r} is not installed; pip install 'tourney-ledger[{extra}]'"
        )
        self.package, self.extra = package, extra


class NothingRecorded(TourneyError):
    """A ledger holds nothing of the tournament that was asked for."""

    exit_code: ClassVar[int] = 2

    def __init__(self, stream: str, place: Path) -> None:
        super().__init__(
            f"{place} holds nothing of tournament {stream!r}; name another tournament or ledger,"
            " or start with `tourney run`"
        )
        self.stream, self.place = stream, place


class EvaluationFault(TourneyError):
    """An evaluation's own code failed; whoever wrote it can put that right."""

    exit_code: ClassVar[int] = 2

    def __init__(self, evaluation: str, doing: str, error: Exception) -> None:
        *_, (path, line, *_rest) = extract_tb(error.__traceback__)
        super().__init__(
            f"evaluation {evaluation!r} failed at {doing}: {type(error).__name__}: {error}"
            f" ({path}:{line}); put that right and run the same command again"
        )
        self.evaluation, self.doing = evaluation, doing


class NotFound(TourneyError):
    """An id names nothing, or more than one thing."""

    exit_code: ClassVar[int] = 2


class AuditDisagrees(TourneyError):
    """What was checked is not what was recorded."""

    exit_code: ClassVar[int] = 8


class DoneWithGaps(TourneyError):
    """Everything that could be done is done, and some of it has no result."""

    exit_code: ClassVar[int] = 6


class NotReady(TourneyError):
    """This machine or ledger is not fit for work."""

    def __init__(self, parts: Sequence[str]) -> None:
        super().__init__(f"not ready: {', '.join(parts)}; see what was found above")
        self.parts = parts


class NoCredentials(TourneyError):
    """A provider is to be asked, and there is no key for it, or a wrong one."""

    exit_code: ClassVar[int] = 4

    def __init__(
        self,
        why: str,
        variable: str = "ANTHROPIC_API_KEY",
        *,
        instead: str = 'judge offline: [judge] provider = "reference"',
    ) -> None:
        super().__init__(f"{why}; export {variable}=..., or {instead}")


class ProviderError(TourneyError):
    """A provider cannot be reached, or fails; what was recorded is kept."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{why}; run the same command again to go on")
        self.why = why


class LeftUnanswered(ProviderError):
    """A server answers, but for single requests: others may still be put there."""

    def __init__(self, details: Mapping[str, Sequence[str]]) -> None:
        """Tell of whom how much was left, with what a server said to each request."""
        lost = (
            f"{len(said)} requests to {whom} were left unanswered, the first with {said[0]!r}"
            for whom, said in details.items()
        )
        super().__init__("; ".join(lost))
        self.details = details


class BatchRefused(ProviderError):
    """A provider took no batch: nothing was paid."""


class BatchUncertain(ProviderError):
    """No answer came to a batch that was sent: it may exist."""


class BatchGone(ProviderError):
    """A provider does not know a batch: it was deleted, or belongs to another workspace."""

    def __init__(self, provider_batch_id: str) -> None:
        super().__init__(
            f"the provider knows no batch {provider_batch_id}: with the right key, it was deleted,"
            f" and `tourney batch forget {provider_batch_id}` gives it up"
        )
        self.provider_batch_id = provider_batch_id


class ResultsLost(ProviderError):
    """A batch's results are no longer kept."""


class Refused(TourneyError):
    """Spending was not agreed to, or would go beyond what was."""

    exit_code: ClassVar[int] = 5


class SpendLimitReached(Refused):
    """The provider's own spend limit is reached."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"the provider stopped at its spend limit: {why}; raise it there, then run again"
        )


class WorkInFlight(TourneyError):
    """Batches are still with the provider."""

    exit_code: ClassVar[int] = 7


class ReplicaFailed(TourneyError):
    """A process that does a share of the work could not go on."""

    def __init__(self, failures: Sequence[str]) -> None:
        super().__init__("\n".join(dict.fromkeys(failures)))
        self.failures = tuple(failures)


_N_IN_A_LINE: Final = 8
N_LINES: Final = 20


def shortened(faults: Sequence[str], separator: str = ", ") -> str:
    """Put faults in a line, the first few in full; it is short enough for a terminal."""
    n_more = len(faults) - _N_IN_A_LINE
    first = separator.join(faults[:_N_IN_A_LINE])
    return f"{first}{separator}and {n_more} more" if n_more > 0 else first


def first_lines(lines: Sequence[str], n_lines: int, noun: str) -> Iterator[str]:
    """Yield the first lines, and one that counts the others.

    Args:
        lines: At least the first N_LINES of them.
        n_lines: How many there are in all.
        noun: What one of them is.
    """
    yield from lines[:N_LINES]
    if n_lines > N_LINES:
        yield f"... and {counted(n_lines - N_LINES, noun)} more"


Spelling: TypeAlias = Callable[[str], str]
"""How a message names a setting: `as_option` makes --as-of of as_of, `str` leaves it as it is."""


def as_option(name: str) -> str:
    """Return a setting's name as the command line spells it."""
    return f"--{name.replace('_', '-')}"


def place_and_fault(error: msgspec.ValidationError) -> tuple[str, str]:
    """Return the dotted name of the field, empty for the whole, and what is wrong with it."""
    why, _, place = str(error).partition(" - at `$")
    return re.sub(r"^\.|`$", "", place), why.replace("`", "")
