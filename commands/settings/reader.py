"""Reading tournament.toml: environment over file over default, and every fault at once."""

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from commands.errors import ConfigurationError
from commands.settings.schema import Settings
from commands.settings.sections import LOADERS, UNKNOWN_LOADER, EndpointSection
from commands.settings.toml import Location, Table, line_of, parse, read_text, value, variable

_CLOSE: Final = 0.8  # of the letters
_OF_OPTIONS: Final = frozenset({"TOURNEY_LEDGER"})  # the command line reads it, as --ledger


def read_settings(path: Path, environ: Mapping[str, str]) -> Settings:
    """Read and check a configuration.

    `TOURNEY_<SECTION>_<KEY>` in the environment overrules the file.

    Raises:
        ConfigurationError: The file is missing, is not TOML, or says something unknown or out of
            range; all faults are listed, each with file and line.
    """
    text = read_text(path)
    document = parse(path, text)
    try:
        settings = Settings.model_validate(overlaid(document, environ))
    except ValidationError as error:
        errors = _causes(error.errors())
        raise ConfigurationError([_fault(path, text, environ, each) for each in errors]) from error
    faults = [
        *_duplicates(path, text, settings),
        *_same_entrant(path, text, settings),
        *_unknown_anchor(path, text, environ, settings),
    ]
    if faults:
        raise ConfigurationError(faults)
    return settings


def overlaid(document: Table, environ: Mapping[str, str]) -> Table:
    """Return the document with the environment's values in place."""
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
    """Refuse a variable of ours that overrules nothing: it would be passed over in silence."""
    keys = {section: list(kind.model_fields) for section, kind in _plain_sections().items()}
    known = {variable((section, key)) for section, names in keys.items() for key in names}
    faults = [
        f"environment variable {name} names no key{_nearby(name, keys)}; correct or unset it"
        for name in environ
        if name not in known | _OF_OPTIONS and _is_ours(name, known, keys)
    ]
    if faults:
        raise ConfigurationError(faults)


def _is_ours(name: str, known: Collection[str], sections: Collection[str]) -> bool:
    """Tell a misspelt variable from another program's: Kubernetes makes TOURNEY_PORT, say."""
    is_of_section = any(name.startswith(variable((section, ""))) for section in sections)
    return is_of_section or bool(difflib.get_close_matches(name, known, n=1, cutoff=_CLOSE))


def _nearby(name: str, keys: Mapping[str, Sequence[str]]) -> str:
    """Say which keys the section has that a variable names, else which sections there are."""
    for section, names in keys.items():
        if name.startswith(variable((section, ""))):
            return f" of [{section}]: {', '.join(names)}"
    return f" of a plain section: {', '.join(keys)}"


def _plain_sections() -> dict[str, type[BaseModel]]:
    """Return the sections that are one table each; those of many cannot be overruled."""
    return {
        section: field.annotation
        for section, field in Settings.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
    }


def _causes(errors: Sequence[ErrorDetails]) -> Sequence[ErrorDetails]:
    """Leave out what is said of a whole section because of a fault inside it."""
    faulty = {error["loc"][:1] for error in errors if len(error["loc"]) > 1}
    return [error for error in errors if error["loc"] not in faulty]


def _fault(path: Path, text: str, environ: Mapping[str, str], error: ErrorDetails) -> str:
    location = _location_in_file(error)
    place = _place(path, text, environ, location)
    name = ".".join(str(part) for part in location)
    if error["type"] == "extra_forbidden":
        return f"{place}: unknown key {name!r}{_hint(error['loc'])}"
    if error["type"] == "missing":
        return f"{place}: {name!r} is missing"
    found = error["input"]["loader"] if error["type"] == UNKNOWN_LOADER else error["input"]
    return f"{place}: {name!r} is {found!r}: {error['msg']}"


def _place(path: Path, text: str, environ: Mapping[str, str], location: Location) -> str:
    """Return where a key was written: the environment's variable, or the line."""
    overruling = variable(location)
    return overruling if overruling in environ else f"{path}:{line_of(text, location)}"


def _location_in_file(error: ErrorDetails) -> Location:
    """Return where an error is; pydantic puts an entrant's loader between its number and key."""
    match error["loc"]:
        case ("entrants", int(n)) if error["type"] == UNKNOWN_LOADER:
            return ("entrants", n, "loader")
        case ("entrants", int(n), str(), *keys):
            return ("entrants", n, *keys)
        case location:
            return location


def _hint(location: Location) -> str:
    """Suggest the valid key closest to the one that was written, or the loader that has it."""
    *table, key = location
    loader = next((name for name, each in LOADERS.items() if key in each.model_fields), None)
    if table[:1] == ["entrants"] and loader:
        return f"; it is for loader {loader!r}, and this entrant's is {table[-1]!r}"
    valid = list(_fields_at(table))
    close = difflib.get_close_matches(str(key), valid, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else f"; known here: {', '.join(valid)}"


def _fields_at(table: Sequence[int | str]) -> Sequence[str]:
    """Return the keys of a table; array elements share their table's keys."""
    if table[:1] == ["entrants"]:
        return list(LOADERS[str(table[-1])].model_fields)
    model: Any = Settings
    for part in table:
        if isinstance(part, str):
            annotation = model.model_fields[part].annotation
            model = getattr(annotation, "__args__", (annotation,))[0]
    return list(model.model_fields)


def _duplicates(path: Path, text: str, settings: Settings) -> Iterator[str]:
    """Find what is named twice."""
    labels = {
        ("entrants", "id"): [entrant.id for entrant in settings.entrants],
        ("rubrics", "dimension"): [rubric.dimension for rubric in settings.rubrics],
        ("jury", "id"): [juror.id for juror in settings.jury],
        ("evaluations", "id"): [evaluation.id for evaluation in settings.evaluations],
    }
    for (section, key), names in labels.items():
        for n, name in enumerate(names):
            if name in names[:n]:
                line = line_of(text, (section, n, key))
                yield f"{path}:{line}: {section}.{key} {name!r} is there twice"


def _same_entrant(path: Path, text: str, settings: Settings) -> Iterator[str]:
    """Find an entrant that is an earlier one at another server: only the first would be asked."""
    served: dict[tuple[object, ...], EndpointSection] = {}
    for n, each in enumerate(settings.entrants):
        if isinstance(each, EndpointSection):
            limit = each.max_new_tokens or settings.generation.max_new_tokens
            determinants = (each.model, each.revision, each.temperature, limit)
            first = served.setdefault(determinants, each)
            if first.base_url != each.base_url:
                line = line_of(text, ("entrants", n, "base_url"))
                yield (
                    f"{path}:{line}: 'entrants.{n}.base_url' is {each.base_url!r}: another server"
                    f" alone makes no other entrant, so {each.id!r} is {first.id!r} and would not"
                    " be asked; give them different revisions"
                )


def _unknown_anchor(
    path: Path, text: str, environ: Mapping[str, str], settings: Settings
) -> Iterator[str]:
    """Find an anchor that is no entrant: ratings would hang from the mean, under its name."""
    anchor, known = settings.bradley_terry.anchor, [entrant.id for entrant in settings.entrants]
    if anchor is not None and anchor not in known:
        place = _place(path, text, environ, ("bradley_terry", "anchor"))
        names = ", ".join(known)
        yield f"{place}: 'bradley_terry.anchor' is {anchor!r}: it is none of the entrants {names}"
