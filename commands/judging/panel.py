"""The panel: the judges that the settings describe, and the one that a mode asks."""

import os
import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Final

from commands.entrants.weights import folder_digest
from commands.errors import ConfigurationError, NoCredentials
from commands.settings.keys import key_variables
from commands.settings.schema import JurorSection, JurySection, Settings
from ledger.events.ratings import Mode
from ledger.events.registration import JudgeSettings
from ledger.identity import JudgeId, canonical_json

REFERENCE_MODEL: Final = "chrF2"  # the offline judge compares responses by it
_TAKES_NO_EFFORT: Final = re.compile(r"claude-(?:haiku|sonnet)-4-5\b")
Parameters = tuple[tuple[str, str | float], ...]


def panel_of(settings: Settings, folder: Path) -> tuple[JudgeSettings, ...]:
    """Return the judges: the headline judge, the pilot judge if it differs, then the jury.

    Raises:
        ConfigurationError: Two judges have the same id or are the same judge, or a judge lacks a
            key that its provider needs.
    """
    modes: tuple[Mode, ...] = ("headline", "pilot")
    main = (judge_of_mode(settings, mode, folder) for mode in modes)
    jury = (_judge(juror, juror.id, juror.model, folder) for juror in settings.jury)
    panel = (*dict.fromkeys(main), *jury)
    if faults := [*_duplicates(panel)]:
        raise ConfigurationError(faults)
    return panel


def judge_of_mode(settings: Settings, mode: Mode, folder: Path) -> JudgeSettings:
    """Return the judge that a mode asks."""
    section = settings.judge
    if section.provider == "reference":
        return _judge(section, "reference", REFERENCE_MODEL, folder)
    model = section.model if mode == "headline" else section.pilot_model or section.model
    name = Path(model).name if section.provider == "hf" else model
    return _judge(section, name, model, folder)


def section_of(settings: Settings, judge: JudgeSettings) -> JurorSection:
    """Return the section that describes a judge of the panel."""
    jurors = (juror for juror in settings.jury if juror.id == judge.judge_id)
    return next(jurors, settings.judge)


def weights_of(settings: Settings, judge: JudgeSettings, folder: Path) -> Path:
    """Return the weights folder of a panel's `hf` judge."""
    section = section_of(settings, judge)
    if isinstance(section, JurySection):
        return (folder / section.model).resolve()
    models = filter(None, (settings.judge.model, settings.judge.pilot_model))
    return next((folder / each).resolve() for each in models if Path(each).name == judge.model)


def require_key(judge: JudgeSettings, section: JurorSection) -> None:
    """Fail early if the provider needs an API key and none is set.

    Raises:
        NoCredentials: None is set.
    """
    variables = key_variables(judge.provider, section.api_key_env)
    if variables and not any(os.environ.get(name) for name in variables):
        why = f"judge {judge.judge_id!r} needs an API key, and none is set"
        raise NoCredentials(why, variables[0])


def _duplicates(panel: Sequence[JudgeSettings]) -> Iterator[str]:
    """Yield a fault for two judges that are the same, and for two with the same id."""
    for one, other in combinations(panel, 2):
        if one.digest == other.digest:
            parts = ", ".join(["model", *dict(one.parameters)])
            yield (
                f"judges {one.judge_id!r} and {other.judge_id!r} are the same judge: remove one, or"
                f" change one of {parts}; judges that differ only in id, base_url or batches are"
                " duplicates"
            )
        elif one.judge_id == other.judge_id:
            remedy = "give [[jury]] another id, or a folder of weights another name"
            yield f"two judges are named {one.judge_id!r}; {remedy}"


def _judge(section: JurorSection, name: str, model: str, folder: Path) -> JudgeSettings:
    return JudgeSettings(
        judge_id=JudgeId(name),
        provider=section.provider,
        model=Path(model).name if section.provider == "hf" else model,
        parameters=_parameters(section, name, model, folder),
    )


def _server_parameters(section: JurorSection) -> Parameters:
    """Return what the settings change in the usual request to a server."""
    changes = {
        "temperature": "" if section.greedy else "omitted",
        "reasoning_effort": section.reasoning_effort or "",
        "extra_body": canonical_json(section.extra_body).decode() if section.extra_body else "",
    }
    return tuple((name, change) for name, change in changes.items() if change)


def _parameters(section: JurorSection, name: str, model: str, folder: Path) -> Parameters:
    """Return what determines a judge's replies, apart from its model."""
    asked = (("max_tokens", float(section.max_tokens)), ("protocol", section.protocol))
    match section.provider:
        case "reference":
            return (("tie_band", section.tie_band),)
        case "anthropic" | "anthropic-batch":
            if section.effort != "none" and _TAKES_NO_EFFORT.match(model):
                raise ConfigurationError(
                    [f'judge {name!r}: {model} takes no effort; set effort = "none"']
                )
            return (("effort", section.effort), *asked)
        case "endpoint" | "openai-batch":
            if section.base_url is None and section.provider == "endpoint":
                raise ConfigurationError([f"judge {name!r}: provider 'endpoint' needs a base_url"])
            return (*asked, *_server_parameters(section))
        case "hf":
            digest = folder_digest((folder / model).resolve())
            return (("weights", digest), ("dtype", section.dtype), *asked)
