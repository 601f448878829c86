"""`tourney project bt`: Bradley-Terry ratings of a tournament, of imported battles, or of both.

With soft scores, which say by how much a response won, they are JudgeArena's soft Elo.
"""

from collections.abc import Mapping
from typing import NamedTuple

from commands.cli.project import bt_views
from commands.cli.project.bt_options import (
    AnchorOption,
    BootstrapsOption,
    ControlOption,
    IntervalOption,
    LevelOption,
    MadeAtOption,
    NameOption,
    OverallOption,
    PrefsOption,
    PriorOption,
    SeedOption,
    SoftScoring,
    TemperatureOption,
    TiesOption,
    UnitOption,
    WithOption,
    bt_parameters,
    features_of,
    soft_scoring,
    weights_of,
)
from commands.cli.shared.command import table_command, with_source
from commands.cli.shared.reading import Selection, pinned, read_verdicts
from commands.cli.tables.table import Table
from commands.errors import ConfigurationError
from commands.runs.judged_tournament import JudgedTournament
from commands.runs.parameters import bradley_terry_settings
from ledger.events.ratings import BradleyTerryParameters
from projections.battles.settled import BY_SCORES


@table_command
def bt(
    selection: Selection,
    *,
    ties: TiesOption = None,
    anchor: AnchorOption = None,
    prior_sd: PriorOption = None,
    interval: IntervalOption = None,
    unit: UnitOption = None,
    level: LevelOption = None,
    bootstraps: BootstrapsOption = None,
    seed: SeedOption = None,
    overall_by: OverallOption = None,
    control: ControlOption = None,
    with_set: WithOption = None,
    name: NameOption = None,
    prefs: PrefsOption = None,
    temperature: TemperatureOption = None,
    made_at: MadeAtOption = None,
) -> Table:
    """Compute Bradley-Terry ratings. Options override the recorded settings.

    Example: tourney project bt --unit prompts
    """
    kind = _TableKind(overall_by, control, with_set, name)
    kind.require_one()
    kind.require_imports({"--prefs": prefs, "--made-at": made_at})
    if temperature is not None and name is None:
        _require_scores(selection, is_plain=overall_by is None and control is None)
    options = {
        "ties": ties,
        "prior_sd": prior_sd,
        "interval": interval,
        "unit": unit,
        "level": level,
        "resamples": bootstraps,
        "seed": seed,
    }
    if name is not None:
        parameters = bt_parameters({}, options, anchor)
        scoring = soft_scoring(prefs, temperature, made_at, ties=parameters.ties)
        return bt_views.of_imported(selection, name, parameters, scoring)
    selection = pinned(selection)
    source = read_verdicts(selection)
    parameters = bt_parameters(bradley_terry_settings(source.state), options, anchor)
    scoring = soft_scoring(prefs, temperature, made_at, ties=parameters.ties)
    return with_source(_rated(source, selection, kind, parameters, scoring), source)


class _TableKind(NamedTuple):
    """The options that each choose another kind of table; at most one is given."""

    overall_by: str | None
    control: str | None
    with_set: str | None
    name: str | None

    def require_one(self) -> None:
        """Refuse more than one.

        Raises:
            ConfigurationError: Several are given.
        """
        if sum(each is not None for each in self) > 1:
            raise ConfigurationError(["choose one of --overall, --control, --with, --name"])

    def require_imports(self, given: Mapping[str, object]) -> None:
        """Refuse options that apply to imported battles only, without any.

        Raises:
            ConfigurationError: One is given.
        """
        for option, value in given.items():
            if value is not None and self.with_set is None and self.name is None:
                raise ConfigurationError([f"{option} needs imported battles: add --name or --with"])


def _rated(
    source: JudgedTournament,
    selection: Selection,
    kind: _TableKind,
    parameters: BradleyTerryParameters,
    scoring: SoftScoring,
) -> Table:
    """Return the chosen table of a tournament."""
    if kind.overall_by is not None:
        weights = weights_of(kind.overall_by, source.settlements)
        return bt_views.overall(source, weights, parameters)
    if kind.control is not None:
        return bt_views.controlled(source, features_of(kind.control), parameters)
    if kind.with_set is not None:
        return bt_views.with_imported(source, selection, kind.with_set, parameters, scoring)
    return bt_views.by_dimension(source, parameters, scoring.temperature)


def _require_scores(selection: Selection, *, is_plain: bool) -> None:
    """Refuse a temperature where no scores are read.

    Raises:
        ConfigurationError: The policy and parser do not keep the scores of each order.
    """
    if not is_plain:
        raise ConfigurationError(["--temperature works with neither --overall nor --control"])
    if selection.rule != BY_SCORES:
        remedy = f"add --parser {BY_SCORES.parser} --policy {BY_SCORES.policy}"
        raise ConfigurationError([f"--temperature needs a judge's scores in each order: {remedy}"])
