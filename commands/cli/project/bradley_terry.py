"""`tourney project bt`: Bradley-Terry ratings of a tournament, of others' battles, or of both.

Of soft scores, which say by how much one was better, they are what JudgeArena calls soft Elo.
"""

from collections.abc import Mapping
from typing import NamedTuple

from commands.cli.project import bt_views
from commands.cli.project import bt_views as bt_imported
from commands.cli.project.bt_options import (
    AmongOption,
    AnchorOption,
    ControlOption,
    IntervalOption,
    LevelOption,
    MadeAtOption,
    NameOption,
    OverallOption,
    PrefsOption,
    PriorOption,
    ResamplesOption,
    SeedOption,
    Softness,
    TemperatureOption,
    TiesOption,
    UnitOption,
    bt_parameters,
    features_of,
    softness_of,
    weights_of,
)
from commands.cli.shared.command import answering, introduced
from commands.cli.shared.reading import Asked, pinned, read_verdicts
from commands.cli.tables.table import Table
from commands.errors import ConfigurationError
from commands.runs.judged_tournament import JudgedTournament
from commands.runs.parameters import bradley_terry_settings
from ledger.events.ratings import BradleyTerryParameters
from projections.battles.settled import BY_SCORES


@answering
def bt(
    asked: Asked,
    *,
    ties: TiesOption = None,
    anchor: AnchorOption = None,
    prior_sd: PriorOption = None,
    interval: IntervalOption = None,
    unit: UnitOption = None,
    level: LevelOption = None,
    resamples: ResamplesOption = None,
    seed: SeedOption = None,
    overall_by: OverallOption = None,
    control: ControlOption = None,
    among: AmongOption = None,
    name: NameOption = None,
    prefs: PrefsOption = None,
    temperature: TemperatureOption = None,
    made_at: MadeAtOption = None,
) -> Table:
    """Rate by Bradley-Terry, as recorded settings say but for options.

    Example: tourney project bt --unit prompts.
    """
    wanted = _Wanted(overall_by, control, among, name)
    wanted.require_one()
    wanted.require_imports({"--prefs": prefs, "--made-at": made_at})
    if temperature is not None and name is None:
        _require_marks(asked, is_plain=overall_by is None and control is None)
    options = {
        "ties": ties,
        "prior_sd": prior_sd,
        "interval": interval,
        "unit": unit,
        "level": level,
        "resamples": resamples,
        "seed": seed,
    }
    if name is not None:
        parameters = bt_parameters({}, options, anchor)
        softness = softness_of(prefs, temperature, made_at, ties=parameters.ties)
        return bt_imported.of_imported(asked, name, parameters, softness)
    asked = pinned(asked)
    source = read_verdicts(asked)
    parameters = bt_parameters(bradley_terry_settings(source.state), options, anchor)
    softness = softness_of(prefs, temperature, made_at, ties=parameters.ties)
    return introduced(_rated(source, asked, wanted, parameters, softness), source)


class _Wanted(NamedTuple):
    """The options that each ask for another table."""

    overall_by: str | None
    control: str | None
    among: str | None
    name: str | None

    def require_one(self) -> None:
        """Refuse several.

        Raises:
            ConfigurationError: There are several.
        """
        if sum(each is not None for each in self) > 1:
            raise ConfigurationError(["choose one of --overall, --control, --with, --name"])

    def require_imports(self, given: Mapping[str, object]) -> None:
        """Refuse options of imported battles where there are none.

        Raises:
            ConfigurationError: One is given.
        """
        for option, value in given.items():
            if value is not None and self.among is None and self.name is None:
                raise ConfigurationError([f"{option} is of imported battles: add --name or --with"])


def _rated(
    source: JudgedTournament,
    asked: Asked,
    wanted: _Wanted,
    parameters: BradleyTerryParameters,
    softness: Softness,
) -> Table:
    """Return the table that is wanted of a tournament."""
    if wanted.overall_by is not None:
        weights = weights_of(wanted.overall_by, source.settlements)
        return bt_views.overall(source, weights, parameters)
    if wanted.control is not None:
        return bt_views.controlled(source, features_of(wanted.control), parameters)
    if wanted.among is not None:
        return bt_imported.among_others(source, asked, wanted.among, parameters, softness)
    return bt_views.by_dimension(source, parameters, softness.temperature)


def _require_marks(asked: Asked, *, is_plain: bool) -> None:
    """Refuse to read marks at a temperature where there are none.

    Raises:
        ConfigurationError: Outcomes are not those of each order by its marks.
    """
    if not is_plain:
        raise ConfigurationError(["--temperature goes with neither --overall nor --control"])
    if asked.rule != BY_SCORES:
        remedy = f"add --parser {BY_SCORES.parser} --policy {BY_SCORES.policy}"
        raise ConfigurationError([f"--temperature reads a judge's marks in each order: {remedy}"])
