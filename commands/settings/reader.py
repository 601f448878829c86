"""Read and check tournament.toml: environment over file over default, all faults at once."""

import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from commands.errors import ConfigurationError, counted, fault_of_pydantic, joined_names
from commands.settings.makers import MAKERS
from commands.settings.schema import OF_ALL_JUDGES, WITHDRAWN, JudgeSection, Settings
from commands.settings.sections import LOADERS, UNKNOWN_LOADER, EndpointSection, GeneratingSection
from commands.settings.toml import (
    ENGINE,
    NETWORK_LEDGER,
    Location,
    Table,
    line_of,
    nearest,
    owner_and_name,
    read_toml,
    value,
    variable,
)
from ledger.identity import canonical_json

_CLOSE: Final = 0.8  # of the letters
_PREFIX: Final = variable(("",))
_BEGINS_ALIKE: Final = 0.6  # of those of the prefix: few variables are compared with all of ours
_OF_MACHINES: Final = frozenset({"TOURNEY_LEDGER", ENGINE, NETWORK_LEDGER})  # no keys
_KNOWN: Final = ", ".join(MAKERS)
_ADDRESS: Final = (
    "must be an address such as http://localhost:8000/v1, without a user name, password or query;"
    " export the key in the variable that 'api_key_env' names"
)


class _Source(NamedTuple):
    """What settings are read from."""

    path: Path
    text: str  # of the file
    document: Table  # with the values of environment variables in place
    environ: Mapping[str, str]

    def place(self, location: Location) -> str:
        """Return where a key was set: the environment variable, or the line of the file."""
        overriding = variable(location)
        is_overridden = overriding in self.environ
        return overriding if is_overridden else f"{self.path}:{line_of(self.text, location)}"

    def fault(self, location: Location, why: str) -> str:
        """Say what is wrong with a key: its place, whose it is, its name, and why."""
        owner, name = owner_and_name(self.document, location)
        return f"{self.place(location)}: {owner}{name!r} {why}"


_Fault: TypeAlias = tuple[Location, str]
"""A key, and what is wrong with it, as a message goes on behind its name."""


def read_settings(path: Path, environ: Mapping[str, str]) -> Settings:
    """Read and check a configuration.

    The environment variable `TOURNEY_<SECTION>_<KEY>` overrides a key of the file.

    Raises:
        ConfigurationError: The file is missing or not TOML, or a key is unknown or its value out
            of range; every fault is listed with its file and line.
    """
    text, document = read_toml(path)
    source = _Source(path, text, overlaid(document, environ), environ)
    try:
        settings = Settings.model_validate(source.document)
    except ValidationError as error:
        errors = _causes(error.errors())
        raise ConfigurationError([_rejected(source, detail) for detail in errors]) from error
    twice = (f"{source.place(location)}: {why}" for location, why in _duplicates(settings))
    faults = [
        *twice,
        *(source.fault(*contradiction) for contradiction in _contradictions(settings)),
    ]
    if faults:
        raise ConfigurationError(faults)
    return settings


def _contradictions(settings: Settings) -> Iterator[_Fault]:
    """Yield what one key demands of another, or of all entrants, and does not find."""
    yield from _misplaced(settings)
    yield from _judged_by_nobody(settings)
    yield from _batch_of_nobody(settings)
    yield from _same_entrant(settings)
    yield from _unknown_entrants(settings)
    yield from _impossible_design(settings)
    yield from _equal_samples(settings)
    yield from _unknown_to_anthropic(settings)


def overlaid(document: Table, environ: Mapping[str, str]) -> Table:
    """Return the document with the values of environment variables in place."""
    _require_known(environ)
    overlay = {name: dict(table) for name, table in document.items() if isinstance(table, dict)}
    for section, kind in _plain_sections().items():
        for key, setting in kind.model_fields.items():
            text = environ.get(variable((section, key)))
            if text is not None:
                found = text if setting.annotation in {str, Path} else value(text)
                overlay.setdefault(section, {})[key] = found
    return {**document, **overlay}


def _require_known(environ: Mapping[str, str]) -> None:
    """Reject a misspelt variable of ours, which would be ignored without a word."""
    keys = {section: list(kind.model_fields) for section, kind in _plain_sections().items()}
    known = {variable((section, key)) for section, names in keys.items() for key in names}
    faults = [
        f"environment variable {name} {_no_key(name, keys)}"
        for name in environ
        if name not in known | _OF_MACHINES and _is_ours(name, known, keys)
    ]
    if faults:
        raise ConfigurationError(faults)


def _is_ours(name: str, known: Collection[str], sections: Collection[str]) -> bool:
    """Tell a misspelt variable from another program's, such as TOURNEY_PORT of Kubernetes."""
    if any(name.startswith(variable((section, ""))) for section in sections):
        return True
    begins_alike = difflib.get_close_matches(name[: len(_PREFIX)], [_PREFIX], cutoff=_BEGINS_ALIKE)
    return bool(begins_alike and difflib.get_close_matches(name, known, n=1, cutoff=_CLOSE))


def _no_key(name: str, keys: Mapping[str, Sequence[str]]) -> str:
    """Say what to do instead; list the keys of the section that it names, or else the sections."""
    for location, instead in WITHDRAWN.items():
        if name == variable(location):
            return f"names a key that was withdrawn; {instead}"
    for section, names in keys.items():
        if name.startswith(variable((section, ""))):
            return f"names no key of [{section}]: {', '.join(names)}; correct or unset it"
    return f"names no key of a plain section: {', '.join(keys)}; correct or unset it"


def _plain_sections() -> dict[str, type[BaseModel]]:
    """Return the sections that are one table each; arrays of tables cannot be overridden."""
    return {
        section: field.annotation
        for section, field in Settings.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
    }


def _causes(errors: Sequence[ErrorDetails]) -> Sequence[ErrorDetails]:
    """Leave out errors of a whole section that follow from an error inside it."""
    faulty = {error["loc"][:1] for error in errors if len(error["loc"]) > 1}
    return [error for error in errors if error["loc"] not in faulty]


def _rejected(source: _Source, error: ErrorDetails) -> str:
    """Say what pydantic rejects."""
    location = _location_in_file(error)
    owner, name = owner_and_name(source.document, location)
    return f"{source.place(location)}: {owner}{_why(error, location, name)}"


def _why(error: ErrorDetails, location: Location, name: str) -> str:
    match error["type"]:
        case "extra_forbidden" if instead := _withdrawn(location):
            return f"{name!r} was withdrawn; {instead}"
        case "extra_forbidden":
            return f"unknown key {name!r}{_hint(error['loc'])}"
        case "missing" if location[-1] == "base_url":
            maker = _unknown_maker(str(error["input"].get("model", "")))
            return f"{name!r} is missing; or name the model's maker, {maker}"
        case "missing":
            return f"{name!r} is missing"
        case "too_short":
            least, found = error["ctx"]["min_length"], error["ctx"]["actual_length"]
            return f"a tournament needs {least} or more [[{name}]]; there is {found or 'none'}"
        case _ if location[-1] == "api_key_env":  # the value may be the key itself
            return f"{name!r} is not the name of an environment variable, as OPENAI_API_KEY"
        case _ if location[-1] == "base_url":  # what might hold a key is not quoted
            found = str(error["input"])
            quoted = "" if re.search(r"[@?#]", found) else f"is {found!r}, but "
            return f"{name!r} {quoted}{_ADDRESS}"
        case kind:
            found = error["input"]["loader"] if kind == UNKNOWN_LOADER else error["input"]
            return f"{name!r} is {found!r}: {fault_of_pydantic(error)}"


def _withdrawn(location: Location) -> str | None:
    """Return what to do instead of a key that earlier versions had."""
    section = "judge" if location[0] == "jury" else str(location[0])
    return WITHDRAWN.get((section, str(location[-1])))


def _location_in_file(error: ErrorDetails) -> Location:
    """Return an error's place; pydantic puts an entrant's loader between its number and key."""
    match error["loc"]:
        case ("entrants", int(n)) if error["type"] == UNKNOWN_LOADER:
            return ("entrants", n, "loader")
        case ("entrants", int(n), str(), *keys):
            return ("entrants", n, *keys)
        case location:
            return location


def _hint(location: Location) -> str:
    """Suggest the closest valid key, or the loader that has this one."""
    *table, key = location
    loader = next((name for name, kind in LOADERS.items() if key in kind.model_fields), None)
    if table[:1] == ["entrants"] and loader:
        return f"; it is for loader {loader!r}, and this entrant's is {table[-1]!r}"
    return nearest(str(key), _fields_at(table))


def _fields_at(table: Sequence[int | str]) -> Sequence[str]:
    """Return the valid keys of a table, or of each table of an array."""
    if table[:1] == ["entrants"]:
        return list(LOADERS[str(table[-1])].model_fields)
    model: Any = Settings
    for part in table:
        if isinstance(part, str):
            annotation = model.model_fields[part].annotation
            model = getattr(annotation, "__args__", (annotation,))[0]
    return list(model.model_fields)


_OF_JURORS: Final = ("id", "model")
_OF_MODELS: Final = ("model", "base_url", "api_key_env")


def _judged_by_nobody(settings: Settings) -> Iterator[_Fault]:
    """Yield what names a model that the offline judge, which stands where nothing does, ignores."""
    sections: list[tuple[Location, JudgeSection]] = [(("judge",), settings.judge)]
    sections += [(("jury", n), juror) for n, juror in enumerate(settings.jury)]
    for table, section in sections:
        said = [key for key in _OF_MODELS if key in section.model_fields_set]
        if said and "provider" not in section.model_fields_set:
            maker = _unknown_maker(section.model)
            yield (*table, said[0]), f"needs a 'provider', or a model with its maker: {maker}"


def _batch_of_nobody(settings: Settings) -> Iterator[_Fault]:
    """Yield that no entrant can be asked in batches, if that is set."""
    if settings.generation.batch and not settings.batched:
        example = 'model = "anthropic/claude-opus-5-5"'
        yield ("generation", "batch"), f"needs an entrant at Anthropic, as {example}; leave it out"


def _unknown_maker(model: str) -> str:
    """Say which makers there are, or which one was perhaps meant."""
    maker, slash, _ = model.partition("/")
    close = difflib.get_close_matches(maker, MAKERS, n=1) if slash else []
    meant = f"; did you mean {close[0]!r}?" if close and close[0] != maker else ""
    return f"as openai/gpt-5.6-luna{meant} (known: {_KNOWN})"


def _misplaced(settings: Settings) -> Iterator[_Fault]:
    """Yield what a juror lacks, and what is said of one judge that holds for another or for all."""
    if settings.judge.id is not None:
        yield ("judge", "id"), "is for [[jury]]: [judge] has the name of its model"
    if settings.judge.share is not None:
        yield ("judge", "share"), "is for [[jury]]: [judge] is asked on all prompts"
    for n, juror in enumerate(settings.jury):
        for key in _OF_JURORS:
            if key not in juror.model_fields_set:
                yield ("jury", n, key), "is missing"
        for key in OF_ALL_JUDGES:
            if key in juror.model_fields_set:
                yield ("jury", n, key), "is a key of [judge] only"


def _duplicates(settings: Settings) -> Iterator[_Fault]:
    """Yield ids and dimensions that are there twice, each with the whole message."""
    labels = {
        ("entrants", "id"): [entrant.id for entrant in settings.entrants],
        ("rubrics", "dimension"): [rubric.dimension for rubric in settings.rubrics],
        ("jury", "id"): [juror.id for juror in settings.jury if juror.id],
        ("evaluations", "id"): [evaluation.id for evaluation in settings.evaluations],
    }
    for (section, key), names in labels.items():
        for n, name in enumerate(names):
            if name in names[:n]:
                yield (section, n, key), f"[[{section}]] {key} {name!r} is there twice"


_NO_DETERMINANTS: Final = {"id", "base_url", "api_key_env", "concurrency"}
"""Settings of an entrant behind a server that change none of its responses."""


def _same_entrant(settings: Settings) -> Iterator[_Fault]:
    """Yield entrants that differ from an earlier one only in `base_url`, and would not be asked."""
    endpoints: dict[bytes, EndpointSection] = {}
    for n, entrant in enumerate(settings.entrants):
        if isinstance(entrant, EndpointSection):
            limit = entrant.max_new_tokens or settings.generation.max_new_tokens
            whole = entrant.model_dump(mode="json", exclude=_NO_DETERMINANTS)
            determinants = canonical_json({**whole, "max_new_tokens": limit})
            first = endpoints.setdefault(determinants, entrant)
            if first.base_url != entrant.base_url:
                alike = f"entrants {first.id!r} and {entrant.id!r} differ only in base_url"
                remedy = "so they count as one entrant; give them different revisions"
                yield ("entrants", n, "base_url"), f"is {entrant.base_url!r}: {alike}, {remedy}"


def _unknown_entrants(settings: Settings) -> Iterator[_Fault]:
    """Yield a fault if the anchor or the baseline is not an entrant."""
    names = {
        ("bradley_terry", "anchor"): settings.bradley_terry.anchor,
        ("judging", "baseline"): settings.judging.baseline,
    }
    known = [entrant.id for entrant in settings.entrants]
    for location, name in names.items():
        if name is not None and name not in known:
            yield location, f"is {name!r}: not an entrant; known: {', '.join(known)}"


def _impossible_design(settings: Settings) -> Iterator[_Fault]:
    """Yield a fault if a sparse design is not the only one, or has more pairs than there are."""
    sparse, n = settings.judging.sparse, len(settings.entrants)
    location, n_pairs = ("judging", "sparse"), n * (n - 1) // 2
    if sparse is not None and settings.judging.baseline is not None:
        yield location, "and 'judging.baseline' are both set; leave one out"
    elif sparse is not None and sparse > n_pairs:
        there_are = f"{n} entrants have {counted(n_pairs, 'pair')}"
        yield location, f"is {sparse}: {there_are}; leave it out to compare all of them"


def _equal_samples(settings: Settings) -> Iterator[_Fault]:
    """Yield a fault if some entrants would give the same text in each sample."""
    n_samples = settings.generation.samples
    greedy = [
        entrant.id
        for entrant in settings.entrants
        if isinstance(entrant, GeneratingSection) and entrant.temperature is None
    ]
    if n_samples > 1 and greedy:
        why = "greedy decoding gives the same text each time"
        remedy = (
            f"set `temperature` in [[entrants]] of {joined_names(greedy)}, or leave samples out"
        )
        yield ("generation", "samples"), f"is {n_samples}, but {why}: {remedy}"


_TAKEN_BY_ANTHROPIC: Final[Mapping[str, object]] = {
    "temperature": 1.0,  # at which its models answer: it is not sent
    "template": "chat",
    "template_arguments": {},
    "top_p": None,
    "top_k": None,
    "min_p": None,
    "repetition_penalty": 1.0,
}
"""Of the keys that entrants have, the one value with which Anthropic's models can be asked."""


def _unknown_to_anthropic(settings: Settings) -> Iterator[_Fault]:
    """Yield what an entrant is asked with that Anthropic's API does not know."""
    for n, entrant in enumerate(settings.entrants):
        if not isinstance(entrant, EndpointSection) or not entrant.is_anthropic:
            continue
        for key, taken in _TAKEN_BY_ANTHROPIC.items():
            found, default = getattr(entrant, key), EndpointSection.model_fields[key].default
            if found not in (default, taken):
                instead = f"set it to {taken:g}, or leave" if isinstance(taken, float) else "leave"
                why = f"is {found!r}, and Anthropic's API has no {key}: {instead} it out"
                yield ("entrants", n, key), why
