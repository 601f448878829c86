"""`tourney project temperature`: how steeply marks are to be read, by people's votes."""

from typing import Annotated, Literal

import typer

from commands.cli.project.bt_options import MadeAtOption, require_steep
from commands.cli.project.bt_views import imported_set
from commands.cli.shared.command import answering_by_own_rule, introduced, reading_verdicts
from commands.cli.shared.reading import (
    Asked,
    notes_of,
    pinned,
    read_verdicts,
    require_no_tournament,
)
from commands.cli.tables.reliability import agreement_table, calibration_table, temperature_table
from commands.cli.tables.table import Table
from commands.errors import ConfigurationError
from commands.runs.judged_tournament import JudgedTournament
from projections.battles.columns import Battles
from projections.battles.settled import (
    BY_SCORES,
    calibrate_judge,
    scored_orders,
    scored_preferences,
)
from projections.battles.soft_scores import TEMPERATURE
from projections.reliability.agreement import agreement as agreement_of
from projections.reliability.calibration import against_gold, against_verdicts
from projections.verdicts.policies import MAJORITY, RECORDED


@reading_verdicts
def agreement(source: JudgedTournament) -> Table:
    """Show each judge's habits and how judges agree. Example: tourney project agreement --json."""
    if source.rule.policy == MAJORITY:
        raise ConfigurationError(["agreement compares the judges of the panel: no majority of it"])
    prompts = frozenset(prompt.prompt_id for prompt in source.state.bank)
    measures = agreement_of(source.state, prompts, source.state.panel, source.rule)
    named = source.named_judge
    return agreement_table(each for each in measures if named is None or named in each.judges)


@reading_verdicts
def calibration(
    source: JudgedTournament,
    against: Annotated[
        Literal["gold", "judged"],
        typer.Option(
            "--against",
            help="gold: whether the gold answer is in a response; judged: its share of wins.",
        ),
    ] = "gold",
) -> Table:
    """Compare p_correct with being right. Example: tourney project calibration --against judged."""
    if against == "judged":
        found = against_verdicts(source.state, source.settlements)
        return calibration_table(found, source.judge, accounts=notes_of(source))
    if source.named_judge or source.named_dimension or source.rule != RECORDED:
        raise ConfigurationError(
            ["--judge, --dimension, --policy and --parser are of verdicts: add --against judged"]
        )
    return calibration_table(against_gold(source.state))


@answering_by_own_rule
def temperature(
    asked: Asked,
    *,
    against: Annotated[
        str, typer.Option("--against", metavar="NAME", help="Imported battles: people's count.")
    ],
    name: Annotated[
        str | None,
        typer.Option(
            "--name", help="Imported battles with a judge's preferences, and no tournament's marks."
        ),
    ] = None,
    made_at: MadeAtOption = None,
) -> Table:
    """Calibrate a judge's marks against people's votes.

    What is found is for `project bt --temperature`. Example: tourney project temperature --name
    judgearena --against lmarena-100k.
    """
    require_steep("--made-at", made_at)
    asked = pinned(asked)
    if name is None:
        if made_at is not None:
            raise ConfigurationError(["--made-at is of imported preferences: add --name"])
        return _of_tournament(asked, against)
    require_no_tournament(asked)
    made_at = TEMPERATURE if made_at is None else made_at
    judged = imported_set(asked, name)
    marked = scored_preferences(judged.battles, made_at=made_at)
    return temperature_table(
        [calibrate_judge(name, marked, _votes(asked, against))],
        notes=[f"{name}: preferences are taken to be made at {made_at:g} (--made-at)."],
        facts={
            "battles": name,
            "against": against,
            "judges": sorted(judged.judges),
            "made_at": made_at,
            "as_of": judged.as_of,
        },
    )


def _of_tournament(asked: Asked, against: str) -> Table:
    source = read_verdicts(asked._replace(rule=BY_SCORES))
    votes = _votes(asked, against)
    found = [
        calibrate_judge(dimension, scored_orders(source.state, group), votes)
        for dimension, group in source.settlements.items()
    ]
    facts = {"judge": source.judge_id, "against": against}
    return introduced(temperature_table(found, notes=notes_of(source), facts=facts), source)


def _votes(asked: Asked, name: str) -> Battles:
    """Return people's battles of an imported set.

    Raises:
        ConfigurationError: It has none.
    """
    table = imported_set(asked, name).battles
    if not table.is_human.any():
        fault = f"--against {name!r} has no battle that people decided: its source is llm-judge"
        raise ConfigurationError([fault])
    return table.where(table.is_human).battles(soft=False)
