"""Read and check tournament.toml: environment over file over default, all faults at once."""

import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from commands.errors import ConfigurationError, counted, fault_of_pydantic, joined_names
from commands.settings.makers import MAKERS
from commands.settings.schema import OF_ALL_JUDGES, WITHDRAWN, JudgeSection, Settings
from commands.settings.sections import (
    LOADERS,
    UNKNOWN_LOADER,
    EndpointSection,
    GeneratingSection,
)
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
        raise ConfigurationError([_fault(source, detail) for detail in errors]) from error
    faults = [
        *_misplaced(source, settings),
        *_judged_by_nobody(source, settings),
        *_batch_of_nobody(source, settings),
        *_duplicates(source, settings),
        *_same_entrant(source, settings),
        *_unknown_entrants(source, settings),
        *_impossible_design(source, settings),
        *_equal_samples(source, settings),
        *_unknown_to_anthropic(source, settings),
    ]
    if faults:
        raise ConfigurationError(faults)
    return settings


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


def _fault(source: _Source, error: ErrorDetails) -> str:
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
        case _ if location[-1] == "base_url":
            return f"{name!r} {_not_an_address(error['input'])}"
        case kind:
            found = error["input"]["loader"] if kind == UNKNOWN_LOADER else error["input"]
            return f"{name!r} is {found!r}: {fault_of_pydantic(error)}"


def _not_an_address(found: object) -> str:
    """Say what is wrong with a server's address; what might hold a key is not quoted."""
    return _ADDRESS if re.search(r"[@?#]", str(found)) else f"is {found!r}, but {_ADDRESS}"


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


def _judged_by_nobody(source: _Source, settings: Settings) -> Iterator[str]:
    """Yield what names a model that the offline judge, which stands where nothing does, ignores."""
    sections: list[tuple[Location, JudgeSection]] = [(("judge",), settings.judge)]
    sections += [(("jury", n), juror) for n, juror in enumerate(settings.jury)]
    for table, section in sections:
        for key in () if "provider" in section.model_fields_set else _OF_MODELS:
            if key in section.model_fields_set:
                location = (*table, key)
                owner, name = owner_and_name(source.document, location)
                fault = f"{source.place(location)}: {owner}{name!r} needs a 'provider'"
                yield f"{fault}, or a model with its maker: {_unknown_maker(section.model)}"
                break


def _batch_of_nobody(source: _Source, settings: Settings) -> Iterator[str]:
    """Yield that no entrant can be asked in batches, if that is set."""
    if settings.generation.batch and not settings.batched:
        place = source.place(("generation", "batch"))
        yield (
            f"{place}: 'generation.batch' needs an entrant at Anthropic, as"
            ' model = "anthropic/claude-opus-5-5"; leave it out'
        )


def _unknown_maker(model: str) -> str:
    """Say which makers there are, or which one was perhaps meant."""
    maker, slash, _ = model.partition("/")
    close = difflib.get_close_matches(maker, MAKERS, n=1) if slash else []
    meant = f"; did you mean {close[0]!r}?" if close and close[0] != maker else ""
    return f"as openai/gpt-5.6-luna{meant} (known: {_KNOWN})"


def _misplaced(source: _Source, settings: Settings) -> Iterator[str]:
    """Yield what a juror lacks, and what is said of one judge that holds for another or for all."""
    if settings.judge.id is not None:
        place = source.place(("judge", "id"))
        yield f"{place}: 'judge.id' is for [[jury]]: [judge] has the name of its model"
    if settings.judge.share is not None:
        place = source.place(("judge", "share"))
        yield f"{place}: 'judge.share' is for [[jury]]: [judge] is asked on all prompts"
    for n, juror in enumerate(settings.jury):
        owner, _ = owner_and_name(source.document, ("jury", n, "id"))
        place = source.place(("jury", n))
        for key in _OF_JURORS:
            if key not in juror.model_fields_set:
                yield f"{place}: {owner}{key!r} is missing"
        for key in OF_ALL_JUDGES:
            if key in juror.model_fields_set:
                place = source.place(("jury", n, key))
                yield f"{place}: {owner}{key!r} is a key of [judge] only"


def _duplicates(source: _Source, settings: Settings) -> Iterator[str]:
    """Yield ids and dimensions that are there twice."""
    labels = {
        ("entrants", "id"): [entrant.id for entrant in settings.entrants],
        ("rubrics", "dimension"): [rubric.dimension for rubric in settings.rubrics],
        ("jury", "id"): [juror.id for juror in settings.jury if juror.id],
        ("evaluations", "id"): [evaluation.id for evaluation in settings.evaluations],
    }
    for (section, key), names in labels.items():
        first_at: dict[str, int] = {}
        for n, name in enumerate(names):
            if first_at.setdefault(name, n) != n:
                place = source.place((section, n, key))
                yield f"{place}: [[{section}]] {key} {name!r} is there twice"


_NO_DETERMINANTS: Final = {"id", "base_url", "api_key_env", "concurrency"}
"""Settings of an entrant behind a server that change none of its responses."""


def _same_entrant(source: _Source, settings: Settings) -> Iterator[str]:
    """Yield entrants that differ from an earlier one only in `base_url`, and would not be asked."""
    endpoints: dict[bytes, EndpointSection] = {}
    for n, entrant in enumerate(settings.entrants):
        if isinstance(entrant, EndpointSection):
            limit = entrant.max_new_tokens or settings.generation.max_new_tokens
            whole = entrant.model_dump(mode="json", exclude=_NO_DETERMINANTS)
            determinants = canonical_json({**whole, "max_new_tokens": limit})
            first = endpoints.setdefault(determinants, entrant)
            if first.base_url != entrant.base_url:
                place, name = source.place(("entrants", n, "base_url")), entrant.id
                yield (
                    f"{place}: [[entrants]] {name!r}: 'base_url' is {entrant.base_url!r}: entrants"
                    f" {first.id!r} and {name!r} differ only in base_url, so they count as one"
                    " entrant; give them different revisions"
                )


def _unknown_entrants(source: _Source, settings: Settings) -> Iterator[str]:
    """Yield a fault if the anchor or the baseline is not an entrant."""
    names = {
        ("bradley_terry", "anchor"): settings.bradley_terry.anchor,
        ("judging", "baseline"): settings.judging.baseline,
    }
    known = [entrant.id for entrant in settings.entrants]
    for (section, key), name in names.items():
        if name is not None and name not in known:
            place, there = source.place((section, key)), ", ".join(known)
            yield f"{place}: '{section}.{key}' is {name!r}: not an entrant; known: {there}"


def _impossible_design(source: _Source, settings: Settings) -> Iterator[str]:
    """Yield a fault if a sparse design is not the only one, or has more pairs than there are."""
    sparse, n = settings.judging.sparse, len(settings.entrants)
    place, n_pairs = source.place(("judging", "sparse")), n * (n - 1) // 2
    if sparse is not None and settings.judging.baseline is not None:
        yield f"{place}: 'judging.sparse' and 'judging.baseline' are both set; leave one out"
    elif sparse is not None and sparse > n_pairs:
        all_pairs = counted(n_pairs, "pair")
        yield (
            f"{place}: 'judging.sparse' is {sparse}: {n} entrants have {all_pairs}; leave it out to"
            " compare all of them"
        )


def _equal_samples(source: _Source, settings: Settings) -> Iterator[str]:
    """Yield a fault if some entrants would give the same text in each sample."""
    n_samples = settings.generation.samples
    greedy = [
        entrant.id
        for entrant in settings.entrants
        if isinstance(entrant, GeneratingSection) and entrant.temperature is None
    ]
    if n_samples > 1 and greedy:
        yield (
            f"{source.place(('generation', 'samples'))}: 'generation.samples' is {n_samples}, but"
            " greedy decoding gives the same text each time: set `temperature` in [[entrants]] of"
            f" {joined_names(greedy)}, or leave samples out"
        )


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


def _unknown_to_anthropic(source: _Source, settings: Settings) -> Iterator[str]:
    """Yield what an entrant is asked with that Anthropic's API does not know."""
    for n, entrant in enumerate(settings.entrants):
        if not isinstance(entrant, EndpointSection) or not entrant.is_anthropic:
            continue
        for key, taken in _TAKEN_BY_ANTHROPIC.items():
            if (value := getattr(entrant, key)) not in (
                type(entrant).model_fields[key].default,
                taken,
            ):
                instead = f"set it to {taken:g}, or leave" if isinstance(taken, float) else "leave"
                yield (
                    f"{source.place(('entrants', n, key))}: [[entrants]] {entrant.id!r}: {key!r} is"
                    f" {value!r}, and Anthropic's API has no {key}: {instead} it out"
                )
