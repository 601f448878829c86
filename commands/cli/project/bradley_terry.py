"""`tourney project bt`: Bradley-Terry ratings of a tournament, of imported battles, or of both.

With soft scores, which say by how much a response won, they are JudgeArena's soft Elo.
"""

from commands.cli.project import bt_views
from commands.cli.project.bt_options import (
    ModelOptions,
    SoftOptions,
    SoftScoring,
    TableKind,
    features_of,
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
def bt(selection: Selection, model: ModelOptions, kind: TableKind, soft: SoftOptions) -> Table:
    """Compute Bradley-Terry ratings. Options override the recorded settings.

    Example: tourney project bt --unit prompts
    """
    kind.require_one()
    kind.require_imports({"--prefs": soft.prefs, "--made-at": soft.made_at})
    if soft.temperature is not None and kind.name is None:
        _require_scores(selection, is_plain=kind.overall_by is None and kind.control is None)
    if kind.name is not None:
        parameters = model.parameters({})
        return bt_views.of_imported(selection, kind.name, parameters, soft.scoring(parameters.ties))
    selection = pinned(selection)
    source = read_verdicts(selection)
    parameters = model.parameters(bradley_terry_settings(source.state))
    scoring = soft.scoring(parameters.ties)
    return with_source(_rated(source, selection, kind, parameters, scoring), source)


def _rated(
    source: JudgedTournament,
    selection: Selection,
    kind: TableKind,
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
