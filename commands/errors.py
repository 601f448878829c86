"""The errors that a user can correct, and helpers for wording them: counts, lists, options."""

import ast
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb
from typing import Any, ClassVar, Final, TypeAlias

import msgspec

from ledger.errors import TourneyError

MOST_NAMES: Final = 6  # that a sentence lists


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """Return "1 run", "2 runs", "3 queries"."""
    return f"{n} {noun}" if n == 1 else f"{n} {plural or f'{noun}s'}"


def joined_names(names: Sequence[str]) -> str:
    """Join names; beyond the first few, only count them."""
    shown = ", ".join(names[:MOST_NAMES])
    n_more = len(names) - MOST_NAMES
    return shown if n_more <= 0 else f"{shown} and {n_more} more"


class ConfigurationError(TourneyError):
    """Settings or input files are wrong; the message lists every fault."""

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


class NotFetched(TourneyError):
    """Neither the Hugging Face Hub nor its cache here gives the files of a name."""

    exit_code: ClassVar[int] = 2

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(f"{why}; {remedy}")
        self.why, self.remedy = why, remedy


class MissingExtra(TourneyError):
    """A command needs packages that are not installed."""

    exit_code: ClassVar[int] = 2

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"package {package!r} is not installed; pip install 'tourney-ledger[{extra}]'"
        )
        self.package, self.extra = package, extra


@contextmanager
def needs_extra(extra: str, package: str) -> Iterator[None]:
    """Name the extra that is missing when an import inside fails.

    Raises:
        MissingExtra: A package is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or package, extra) from error


class NothingRecorded(TourneyError):
    """A ledger lacks the tournament that was named, or any."""

    exit_code: ClassVar[int] = 2

    def __init__(
        self,
        stream: str | None,
        place: Path,
        held: Sequence[str] = (),
        imported: Sequence[str] = (),
    ) -> None:
        """Take the tournament that was named, and what the ledger holds: tournaments, sets."""
        lacking = "no tournament" if stream is None else f"no tournament {stream!r}"
        others = f"it holds {', '.join(map(repr, held))}; name one of these or" if held else "name"
        remedy = "another ledger, or start with `tourney run`"
        sets = ""
        if imported and not held:
            command = f"tourney project elo --name {shlex.quote(imported[0])}"
            sets = f"; of imported battles it holds {shortened(imported)}, see `{command}`"
        super().__init__(f"{place} holds {lacking}{sets}; {others} {remedy}")
        self.stream, self.place, self.held = stream, place, tuple(held)


_OWN: Final = Path(__file__).parent  # where what checks the code of others is


class EvaluationFault(TourneyError):
    """An evaluation's own code failed; its author can correct it."""

    exit_code: ClassVar[int] = 2

    def __init__(self, evaluation: str, doing: str, error: Exception) -> None:
        places = [
            f" ({summary.filename}:{summary.lineno})"
            for summary in extract_tb(error.__traceback__)
            if not Path(summary.filename).is_relative_to(_OWN)
        ]
        super().__init__(
            f"evaluation {evaluation!r} failed at {doing}: {type(error).__name__}: {error}"
            f"{places[-1] if places else ''}; correct it and run the same command again"
        )
        self.evaluation, self.doing = evaluation, doing


class NotFound(TourneyError):
    """An id names nothing, or more than one thing."""

    exit_code: ClassVar[int] = 2


class AuditDisagrees(TourneyError):
    """A check found something other than what was recorded."""

    exit_code: ClassVar[int] = 8


class DoneWithGaps(TourneyError):
    """Everything that could be done is done, and some of it has no result."""

    exit_code: ClassVar[int] = 6


class NoCredentials(TourneyError):
    """A provider needs an API key, and there is none, or a wrong one."""

    exit_code: ClassVar[int] = 4
    was_sent = True  # False: the provider itself says so, and has not done what was asked

    def __init__(
        self,
        why: str,
        variable: str = "ANTHROPIC_API_KEY",
        *,
        instead: str = 'judge offline: [judge] provider = "reference"',
    ) -> None:
        super().__init__(f"{why}; export {variable}=..., or {instead}")


class ProviderError(TourneyError):
    """A provider cannot be reached, or fails; everything recorded is kept."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{why}; run the same command again to go on")
        self.why = why


class NotAnswering(ProviderError):
    """A provider does not answer a call that costs nothing; it may later."""


class NothingReadable(ProviderError):
    """Reply after reply of a judge holds nothing readable, or of an entrant is empty; all paid."""


class LeftUnanswered(ProviderError):
    """A server left single requests unanswered; others may still be sent to it."""

    def __init__(self, details: Mapping[str, Sequence[str]]) -> None:
        """Take the error of each unanswered request, by whom it was sent to."""
        lost = (
            f"{counted(len(errors), 'request')} to {whom} got no answer, first error: {errors[0]!r}"
            for whom, errors in details.items()
        )
        super().__init__("; ".join(lost))
        self.details = details


class DeferredFailures:
    """Collect unanswered requests while the rest of the work goes on; raise once at the end."""

    def __init__(self) -> None:
        self._details: dict[str, list[str]] = {}

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Collect `LeftUnanswered` errors raised inside; other errors pass through."""
        try:
            yield
        except LeftUnanswered as error:
            self.add(error.details)

    def add(self, details: Mapping[str, Sequence[str]]) -> None:
        """Collect the servers' error messages, by entrant and server."""
        for entrant, messages in details.items():
            self._details.setdefault(entrant, []).extend(messages)

    def raise_collected(self) -> None:
        """Raise one error for everything collected.

        Raises:
            LeftUnanswered: At least one request was unanswered.
        """
        if self._details:
            raise LeftUnanswered(self._details)


class BatchRefused(ProviderError):
    """A provider says that it took no batch; something between may have said so in its place."""

    def __init__(self, why: str, *, was_sent: bool = True) -> None:
        """Take the reason; without `was_sent` it is certain that no batch exists."""
        super().__init__(why)
        self.was_sent = was_sent


class BatchBusy(BatchRefused):
    """A provider takes no batch at present, and may later."""

    def __init__(self, why: str, *, was_sent: bool = True, asked_s: float | None = None) -> None:
        """Take the reason, and the wait that it asks for, in seconds."""
        super().__init__(why, was_sent=was_sent)
        self.asked_s = asked_s


class BatchTooLarge(BatchRefused):
    """A provider, or something between, takes no batch of that size."""


class BatchUncertain(ProviderError):
    """A batch was sent and no answer came: it may exist."""


class BatchGone(ProviderError):
    """A provider does not have a batch: it was deleted, or belongs to another workspace."""

    def __init__(self, provider_batch_id: str) -> None:
        super().__init__(
            f"the provider has no batch {provider_batch_id}; if the API key is the right one, the"
            f" batch was deleted: `tourney batch forget {provider_batch_id}` reopens its queries"
        )
        self.provider_batch_id = provider_batch_id


class ResultsLost(ProviderError):
    """A provider no longer keeps a batch's results."""

    def __init__(self, provider_batch_id: str) -> None:
        super().__init__(
            f"the provider no longer keeps the results of batch {provider_batch_id}, which were"
            f" billed; `tourney batch forget {provider_batch_id}` reopens its queries"
        )
        self.provider_batch_id = provider_batch_id


class Refused(TourneyError):
    """Spending was not confirmed, or might exceed the cap."""

    exit_code: ClassVar[int] = 5


class SpendLimitReached(Refused):
    """The provider's own spend limit is reached."""

    was_sent = True  # False: the provider itself says so, and has not done what was asked

    def __init__(self, why: str) -> None:
        super().__init__(
            f"the provider stopped at its spend limit: {why}; raise it there, then run again"
        )


class WorkInFlight(TourneyError):
    """Batches are still with the provider."""

    exit_code: ClassVar[int] = 7


class ReplicaFailed(TourneyError):
    """A process that does a share of the work failed."""

    def __init__(self, failures: Sequence[str]) -> None:
        super().__init__("\n".join(dict.fromkeys(failures)))
        self.failures = tuple(failures)


_N_IN_A_LINE: Final = 8
N_LINES: Final = 20


def shortened(faults: Sequence[str], separator: str = ", ") -> str:
    """Join the first faults in one line, and say how many more there are."""
    n_more = len(faults) - _N_IN_A_LINE
    first = separator.join(faults[:_N_IN_A_LINE])
    return f"{first}{separator}and {n_more} more" if n_more > 0 else first


def first_lines(lines: Sequence[str], n_lines: int, noun: str) -> Iterator[str]:
    """Yield the first lines, then one that counts the rest.

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
    """Return the dotted name of the faulty field, empty for the whole, and its fault."""
    why, _, place = str(error).partition(" - at `$")
    return re.sub(r"^\.|`$", "", place), _fault_of_msgspec(why.replace("`", ""))


_LIMITS: Final[Mapping[str, str]] = {
    ">": "must be above {}",
    ">=": "must be {} or more",
    "<": "must be below {}",
    "<=": "must be at most {}",
}
_KINDS: Final[Mapping[str, str]] = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "date": "a date",
}
"""What we call the types of JSON and TOML; other types have the same name in msgspec."""


def _fault_of_msgspec(why: str) -> str:
    """Say in plain words what msgspec says of a value; what is not known stays as it is."""
    match why.split():
        case ["Object", "missing", "required", "field", name]:
            said = f"{name!r} is missing"
        case ["Object", "contains", "unknown", "field", name]:
            said = f"unknown field {name!r}"
        case ["Invalid", "enum", "value", *_]:
            said = f"{why.removeprefix('Invalid enum value ')} is none of its values"
        case ["Expected", "array", "of", "length", least, "got", n]:
            said = f"must have {least.rstrip(',')} entries, not {n}"
        case ["Expected", "str", "of", "length", ">=", n]:
            said = _too_short(int(n))
        case ["Expected", "str", "matching", "regex", *_]:
            said = _other_form(ast.literal_eval(why.partition("regex ")[2]))
        case ["Expected", "int" | "float", sign, limit] if sign in _LIMITS:
            said = _LIMITS[sign].format(_number(float(limit)))
        case _:
            said = _other_kind(why)
    return said


def _other_kind(why: str) -> str:
    """Say of which type a value must be, if msgspec says that."""
    found = re.fullmatch(r"Expected ([\w| ]+), got (\w+)", why)
    if found is None:
        return why
    kinds = [_KINDS.get(kind, kind) for kind in found[1].split(" | ")]
    return f"must be {' or '.join(kinds)}, not {_KINDS.get(found[2], found[2])}"


def fault_of_pydantic(error: Mapping[str, Any]) -> str:
    """Say in plain words what pydantic says of a value; what is not known stays as it is."""
    facts = error.get("ctx", {})
    match error["type"]:
        case "greater_than" | "greater_than_equal" | "less_than" | "less_than_equal" as kind:
            sign = kind.replace("_than", "").replace("_equal", "=")
            (limit,) = facts.values()
            return _LIMITS[sign.replace("greater", ">").replace("less", "<")].format(_number(limit))
        case "string_too_short":
            return _too_short(facts["min_length"])
        case "string_pattern_mismatch":
            return _other_form(facts["pattern"])
        case "literal_error":
            return f"must be {facts['expected']}"
        case "missing":
            return "it is missing"
        case "extra_forbidden":
            return "it is not known here"
        case kind if kind in _PYDANTICS_KINDS:
            return f"must be {_PYDANTICS_KINDS[kind]}"
        case _:
            return str(error["msg"])


_PYDANTICS_KINDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("string_type", "path_type"), "a text"),
    **dict.fromkeys(("list_type", "tuple_type"), "a list"),
    **dict.fromkeys(("dict_type", "mapping_type", "model_type"), "a table"),
    "model_attributes_type": "a table",
    "finite_number": "a finite number",
}
"""What pydantic's errors about a type ask for."""

_FORMS: Final[Mapping[str, str]] = {
    r"^\w+$": "must have letters, digits and underscores only",
    r"^[\w-]+$": "must have letters, digits, dashes and underscores only",
    r"^[\w.-]+$": "must have letters, digits, dots, dashes and underscores only",
    r"^(auto|cpu|mps|cuda(:\d+)?)$": "must be auto, cpu, mps, cuda or cuda:N",
}
"""What the patterns of settings ask for."""


def _other_form(pattern: str) -> str:
    return _FORMS.get(pattern, f"must be of the form {pattern}")


def _too_short(n_least: int) -> str:
    return "must not be empty" if n_least == 1 else f"must have {n_least} characters or more"


def _number(limit: float) -> str:
    return f"{int(limit):,}" if limit == int(limit) else f"{limit:g}"
