"""`tourney project bt`: Bradley-Terry ratings of a tournament, of imported battles, or of both.

With soft scores, which say by how much a response won, they are JudgeArena's soft Elo.
"""

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer

from commands.cli.project.bt_options import (
    ModelOptions,
    PairOptions,
    Prefs,
    SoftOptions,
    TableKind,
)
from commands.cli.project.bt_ratings import corrected_set, of_imported, ratings_of
from commands.cli.project.reliability import fitted_temperature
from commands.cli.shared import options
from commands.cli.shared.imported_set import (
    read_set,
    require_no_tournament,
    votes_of,
)
from commands.cli.shared.ledger import DEFAULT_CONFIG
from commands.cli.shared.output import Writer
from commands.cli.shared.reading import Selection, SetSelection, pinned, read_verdicts
from commands.cli.shared.views import show, with_source
from commands.cli.tables.render import Format
from commands.cli.tables.table import Table
from commands.errors import ConfigurationError
from projections.battles.settled import BY_SCORES
from projections.battles.soft_scores import TEMPERATURE
from projections.ratings.bradley_terry.comparisons import Adjustment
from projections.verdicts.policies import DEFAULT_POLICY, RECORDED


def bt(
    ties: options.Ties = None,
    anchor: options.Anchor = None,
    overall_by: Annotated[
        str | None,
        typer.Option(
            "--overall",
            metavar="WEIGHTS",
            help="Show overall ratings, by weights of dimensions: factuality=2,utility=1.",
        ),
    ] = None,
    control: Annotated[
        str | None,
        typer.Option(
            help="Control for style features: 'style' (all), or any of length,headers,lists,bold."
        ),
    ] = None,
    with_set: Annotated[
        str | None,
        options.of_set(
            "Rate together with this imported set of battles.", "--with", metavar="NAME"
        ),
    ] = None,
    truth: Annotated[
        str | None, options.of_set("Correct the judge by the human votes of this imported set.")
    ] = None,
    fit_temperature: Annotated[
        str | None,
        options.of_set(
            "Show which --temperature fits the human votes of this imported set best.",
            "--fit-temperature",
            metavar="NAME",
        ),
    ] = None,
    prefs: Annotated[
        Prefs | None, typer.Option(help="soft: use imported preferences; hard: only who won.")
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(help="Turn a judge's scores into soft scores at this temperature."),
    ] = None,
    made_at: Annotated[
        float | None,
        typer.Option(help=f"The temperature of imported preferences. Default: {TEMPERATURE}."),
    ] = None,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Show the difference of each pair, with adjusted p.")
    ] = False,
    adjust: Annotated[
        Adjustment | None,
        typer.Option(help="How --pairs adjusts p for the number of pairs. Default: max-t."),
    ] = None,
    name: options.SetName = None,
    where: options.Where = None,
    unread: options.UnreadRule = None,
    config: options.Config = DEFAULT_CONFIG,
    ledger: options.Ledger = None,
    tournament: options.Tournament = None,
    as_of: options.AsOf = None,
    judge: options.Judge = None,
    dimension: options.Dimension = None,
    policy: options.Policy = DEFAULT_POLICY,
    parser: options.Parser = None,
    diff: options.Diff = None,
    output_format: options.OutputFormat = Format.TABLE,
    as_json: options.AsJson = False,
) -> None:
    """Compute Bradley-Terry ratings. Options override the recorded settings.

    Example: tourney project bt --ties davidson
    """
    imported = SetSelection(name, where, unread)
    selection = Selection(
        config, ledger, tournament, as_of, judge, dimension, policy, parser, imported
    )
    kind = TableKind(overall_by, control, with_set, truth, fit_temperature)
    model, soft = ModelOptions(ties, anchor), SoftOptions(prefs, temperature, made_at)
    pairwise = PairOptions(pairs, adjust)
    kind.require_consistent(soft, name)
    if fit_temperature is not None:
        _require_nothing_else(
            selection, [*model, prefs, temperature, adjust, diff], kind, has_pairs=pairs
        )
        table_of = partial(fitted_temperature, against=fit_temperature, made_at=made_at)
    else:
        table_of = partial(_ratings, model=model, kind=kind, soft=soft, pairwise=pairwise)
    show(table_of, selection, Writer(output_format, as_json), diff)


def _ratings(
    selection: Selection,
    model: ModelOptions,
    kind: TableKind,
    soft: SoftOptions,
    pairwise: PairOptions,
) -> Table:
    """Return the chosen ratings, of a tournament or of an imported set."""
    chosen, where = selection.imported, selection.imported.kept
    if chosen.name is not None:
        require_no_tournament(selection)
        parameters = model.parameters({})
        scoring = soft.settled(parameters.ties)
        imported = read_set(selection, chosen.name, where, chosen.unread)
        if kind.truth is None:
            return of_imported(imported, parameters, scoring).table(pairwise)
        votes = votes_of(selection, kind.truth, "--truth")
        rated = corrected_set(imported, parameters, scoring, votes, kind.truth)
        return rated.table(pairwise)
    if soft.temperature is not None:
        _require_scores(selection, is_plain=kind.overall_by is None and kind.control is None)
    selection = pinned(selection)
    source = read_verdicts(selection, settles_only=soft.temperature is None)
    parameters = model.parameters(source.settings("bradley_terry"))
    scoring = soft.settled(parameters.ties)
    rated = ratings_of(source, selection, kind, parameters, scoring)
    return with_source(rated.table(pairwise), source)


def _require_nothing_else(
    selection: Selection, options: Sequence[object], kind: TableKind, *, has_pairs: bool
) -> None:
    """Refuse options of ratings where a temperature is fitted."""
    others = (*options, *kind._replace(fit_temperature=None))
    is_ruled = selection.rule not in {RECORDED, BY_SCORES}
    if has_pairs or is_ruled or any(option is not None for option in others):
        fault = "--fit-temperature rates nobody: leave out all other options, but for --made-at"
        raise ConfigurationError([f"{fault} and those that choose what is read"])


def _require_scores(selection: Selection, *, is_plain: bool) -> None:
    """Refuse a temperature where no scores of each order are read."""
    if not is_plain:
        raise ConfigurationError(["--temperature works with neither --overall nor --control"])
    if selection.rule != BY_SCORES:
        remedy = f"add --parser {BY_SCORES.parser} --policy {BY_SCORES.policy}"
        raise ConfigurationError([f"--temperature needs a judge's scores in each order: {remedy}"])
