"""The panel: the judges in the settings, and the one that `--mode` selects."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from commands.entrants.weights import FetchSnapshot, find_weights, folder_digest, name_of_weights
from commands.errors import ConfigurationError
from commands.settings.inputs import read_instructions
from commands.settings.makers import key_variables
from commands.settings.schema import JudgeSection, Settings
from ledger.events.ratings import Mode
from ledger.events.registration import TOGETHER, JudgeSettings
from ledger.identity import JudgeId, canonical_json

REFERENCE_MODEL: Final = "chrF2"  # the offline judge compares responses by it
TIE_BAND: Final = 1.0  # points of chrF; our choice: a full stop changes a short answer by more
_TAKES_NO_EFFORT: Final = re.compile(r"claude-(?:haiku|sonnet)-4-5\b")
Parameters = tuple[tuple[str, str | float], ...]


def panel_of(
    settings: Settings, folder: Path, fetch: FetchSnapshot | None = None
) -> tuple[JudgeSettings, ...]:
    """Return the judges: the headline judge, the pilot judge if it differs, then the jury.

    `fetch` resolves names of weights on the Hub; without it only folders on this machine are found.

    Raises:
        ConfigurationError: Two judges have the same id or are the same judge, or a judge lacks a
            key that its provider needs.
        WeightsError: A judge's weights are missing or unreadable.
    """
    modes: tuple[Mode, ...] = ("headline", "pilot")
    main = (judge_of_mode(settings, mode, folder, fetch) for mode in modes)
    jury = (_juror(juror, folder, fetch) for juror in settings.jury)
    panel = (*dict.fromkeys(main), *jury)
    if settings.judging.together:
        panel = tuple(replace(judge, parameters=(*judge.parameters, TOGETHER)) for judge in panel)
    if faults := [*_duplicates(panel)]:
        raise ConfigurationError(faults)
    return panel


def _juror(section: JudgeSection, folder: Path, fetch: FetchSnapshot | None) -> JudgeSettings:
    judge = _judge(section, str(section.id), section.model, folder, fetch)
    if section.instructions is None:
        return judge
    key = f"instructions of [[jury]] {section.id!r}"
    return replace(judge, instructions=read_instructions(folder / section.instructions, key))


def judge_of_mode(
    settings: Settings, mode: Mode, folder: Path, fetch: FetchSnapshot | None = None
) -> JudgeSettings:
    """Return the judge that a mode asks."""
    model = _model_of_mode(settings, mode)
    return _judge(settings.judge, id_of_mode(settings, mode, folder), model, folder, fetch)


def id_of_mode(settings: Settings, mode: Mode, folder: Path) -> str:
    """Return the id of the judge that a mode asks; its weights need not be there."""
    provider, model = settings.judge.provider, _model_of_mode(settings, mode)
    if provider == "reference":
        return "reference"
    return name_of_weights(Path(model), folder) if provider == "hf" else model


def _model_of_mode(settings: Settings, mode: Mode) -> str:
    section = settings.judge
    if section.provider == "reference":
        return REFERENCE_MODEL
    return section.model if mode == "headline" else section.pilot_model or section.model


def section_of(settings: Settings, judge: JudgeSettings) -> JudgeSection:
    """Return the section that describes a judge of the panel."""
    jurors = (juror for juror in settings.jury if juror.id == judge.judge_id)
    return next(jurors, settings.judge)


def weights_of(
    settings: Settings, judge: JudgeSettings, folder: Path, fetch: FetchSnapshot | None = None
) -> Path:
    """Return the weights folder of a panel's `hf` judge.

    Raises:
        WeightsError: The Hub and its cache do not give it.
    """
    section = section_of(settings, judge)
    models = filter(None, (section.model, section.pilot_model))
    model = next(model for model in models if name_of_weights(Path(model), folder) == judge.model)
    return find_weights(Path(model), folder, fetch).folder


def keys_needed(settings: Settings, judges: Iterable[JudgeSettings]) -> dict[str, tuple[str, ...]]:
    """Return the variables of which one must hold a judge's key, as `require_keys` takes them."""
    sections = ((judge, section_of(settings, judge)) for judge in judges)
    return {
        f"judge {judge.judge_id!r}": key_variables(
            judge.provider, section.api_key_env, section.base_url
        )
        for judge, section in sections
    }


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


def _judge(
    section: JudgeSection, name: str, model: str, folder: Path, fetch: FetchSnapshot | None
) -> JudgeSettings:
    return JudgeSettings(
        judge_id=JudgeId(name),
        provider=section.provider,
        model=name_of_weights(Path(model), folder) if section.provider == "hf" else model,
        parameters=_parameters(section, name, model, folder, fetch),
    )


def _server_parameters(section: JudgeSection) -> Parameters:
    """Return what the settings change in the usual request to a server."""
    changes = {
        "reasoning_effort": section.effort or "",
        "extra_body": canonical_json(section.extra_body).decode() if section.extra_body else "",
    }
    return tuple((name, change) for name, change in changes.items() if change)


def _parameters(
    section: JudgeSection, name: str, model: str, folder: Path, fetch: FetchSnapshot | None
) -> Parameters:
    """Return what determines a judge's replies, apart from its model."""
    asked = (("max_tokens", float(section.max_tokens)), ("protocol", section.protocol))
    match section.provider:
        case "reference":
            return (("tie_band", TIE_BAND),)
        case "anthropic" | "anthropic-batch":
            effort = section.effort or "low"
            if effort != "none" and _TAKES_NO_EFFORT.match(model):
                raise ConfigurationError(
                    [f'judge {name!r}: {model} takes no effort; set effort = "none"']
                )
            return (("effort", effort), *asked)
        case "endpoint" | "openai-batch":
            if section.base_url is None and section.provider == "endpoint":
                why = "needs a base_url, or a model with its maker, as openai/gpt-5.6-luna"
                raise ConfigurationError([f"judge {name!r}: provider 'endpoint' {why}"])
            return (*asked, *_server_parameters(section))
        case "hf":
            digest = folder_digest(find_weights(Path(model), folder, fetch).folder)
            return (("weights", digest), ("dtype", section.dtype), *asked)
