"""`tourney project bt`: Bradley-Terry ratings of a tournament, of imported battles, or of both.

With soft scores, which say by how much a response won, they are JudgeArena's soft Elo.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from math import isfinite
from typing import Annotated, Final, NamedTuple

import typer

from commands.cli.project.bt_ratings import (
    HowRated,
    Prefs,
    by_dimension,
    controlled,
    corrected,
    corrected_by_judge,
    corrected_set,
    fitted_to_set,
    fitted_to_votes,
    how_rated,
    of_imported,
    overall,
    with_imported,
)
from commands.cli.shared import options
from commands.cli.shared.reading import chosen_set, pinned, read_verdicts, show_table, with_source
from commands.cli.shared.selection import BATTLES, WRITTEN, Selected, Selection, selecting
from commands.cli.tables.bradley_terry import RatedBoards
from commands.cli.tables.table import Table
from commands.errors import ConfigurationError
from commands.reading.judged_tournament import JudgedTournament
from commands.reading.parameters import bradley_terry_parameters
from commands.reading.resolve import require_known
from ledger.events.imports import set_of
from ledger.events.ratings import BradleyTerryParameters, TieModel
from ledger.events.registration import JudgeSettings
from ledger.events.values import MAX_POINTS
from ledger.store import Ledger
from projections.battles.soft_scores import BY_SCORES, TEMPERATURE
from projections.ratings.tournament import FEATURES
from projections.verdicts.policies import RECORDED

_STYLE: Final = "style"
_MAX_WEIGHT: Final = 1e6  # of a dimension, so that no sum overflows; only ratios count


class _RatingOptions(NamedTuple):
    """The options of `bt` beside its selection; None: not given."""

    ties: TieModel | None
    anchor: str | None
    overall: str | None
    control: str | None
    with_set: str | None
    truth: str | None
    prefs: Prefs | None
    temperature: float | None

    def require_consistent(self, name: str | None) -> None:
        """Refuse options of several tables, and options for imported battles without any."""
        others = (self.overall, self.control, self.with_set)
        if sum(value is not None for value in (*others, name)) > 1:
            raise ConfigurationError(["choose one of --overall, --control, --with, --name"])
        if self.truth is not None and any(value is not None for value in others):
            raise ConfigurationError(["--truth works with none of --overall, --control, --with"])
        if self.prefs is not None and self.with_set is None and name is None:
            raise ConfigurationError(["--prefs needs imported battles: add --name or --with"])

    def how(self, recorded: Mapping[str, object]) -> HowRated:
        """Return how battles are rated, by the recorded parameters, overridden."""
        parameters = parameters_of(recorded, self.ties, self.anchor)
        return how_rated(parameters, self.prefs, self.temperature)


@selecting(*BATTLES, *WRITTEN)
def bt(
    ctx: Selected,
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
        str | None,
        options.of_set(
            "Correct the judge by the human votes of this imported set, or by this judge of the"
            " panel, which judged a random share of the prompts."
        ),
    ] = None,
    fit_temperature: Annotated[
        str | None,
        options.of_set(
            "Show which --temperature fits the human votes of this imported set best.",
            metavar="NAME",
        ),
    ] = None,
    prefs: Annotated[
        Prefs | None, typer.Option(help="soft: use imported preferences; hard: only who won.")
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(
            help="Turn a judge's scores into soft scores at this temperature. Imported preferences"
            f" are converted to it from JudgeArena's {TEMPERATURE}."
        ),
    ] = None,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Show the difference of each pair, with adjusted p.")
    ] = False,
    diff: options.Diff = None,
) -> None:
    """Compute Bradley-Terry ratings. Options override the recorded settings.

    Example: tourney project bt --ties davidson
    """
    chosen = _RatingOptions(ties, anchor, overall_by, control, with_set, truth, prefs, temperature)
    chosen.require_consistent(ctx.selection.name)
    if fit_temperature is None:
        show_table(ctx, partial(_ratings, chosen=chosen, pairs=pairs), diff)
        return
    others = (*chosen, diff, pairs or None)
    is_ruled = ctx.selection.rule not in {RECORDED, BY_SCORES}
    if is_ruled or any(value is not None for value in others):
        others_are = "all options but those that choose what is read"
        raise ConfigurationError([f"--fit-temperature rates nobody: leave out {others_are}"])
    show_table(ctx, partial(_fitted_temperature, against=fit_temperature))


def _ratings(selection: Selection, chosen: _RatingOptions, *, pairs: bool) -> Table:
    """Return the chosen ratings, of a tournament or of an imported set."""
    if selection.is_of_set:
        return _ratings_of_set(selection, chosen).table(pairs=pairs)
    if chosen.temperature is not None:
        _require_scores(selection, is_plain=chosen.overall is None and chosen.control is None)
    selection = pinned(selection)
    source = read_verdicts(selection)
    rated = _ratings_of_tournament(source, selection, chosen)
    return with_source(rated.table(pairs=pairs), source)


def _ratings_of_set(selection: Selection, chosen: _RatingOptions) -> RatedBoards:
    how, imported = chosen.how({}), chosen_set(selection)
    if chosen.truth is None:
        return of_imported(imported, how)
    return corrected_set(imported, selection, chosen.truth, how)


def _ratings_of_tournament(
    source: JudgedTournament, selection: Selection, chosen: _RatingOptions
) -> RatedBoards:
    how = chosen.how(source.settings("bradley_terry"))
    if chosen.overall is not None:
        return overall(source, weights_of(chosen.overall, source.settlements), how.parameters)
    if chosen.control is not None:
        return controlled(source, _features_of(chosen.control), how.parameters)
    if chosen.with_set is not None:
        if source.where:
            raise ConfigurationError(
                ["--where selects prompts of the tournament: leave out --with"]
            )
        return with_imported(source, selection, chosen.with_set, how)
    if chosen.truth is not None:
        if (judge := _judge_named(source, selection, chosen.truth)) is not None:
            return corrected_by_judge(source, judge, how.parameters)
        return corrected(source, selection, chosen.truth, how.parameters)
    return by_dimension(source, how)


def _judge_named(source: JudgedTournament, selection: Selection, name: str) -> JudgeSettings | None:
    """Return the judge of the panel that --truth names, unless an imported set has that name."""
    with Ledger.read_only(selection.path) as opened:
        if name in map(set_of, opened.streams()):
            return None
    return next((judge for judge in source.state.panel if judge.judge_id == name), None)


def _require_scores(selection: Selection, *, is_plain: bool) -> None:
    """Refuse a temperature where no scores of each order are read."""
    if not is_plain:
        raise ConfigurationError(["--temperature works with neither --overall nor --control"])
    if selection.rule != BY_SCORES:
        remedy = f"add --parser {BY_SCORES.parser} --policy {BY_SCORES.policy}"
        raise ConfigurationError([f"--temperature needs a judge's scores in each order: {remedy}"])


def _fitted_temperature(selection: Selection, against: str) -> Table:
    """Fit the temperature of a judge's scores: of an imported set, else of the tournament's."""
    selection = pinned(selection)
    if selection.is_of_set:
        return fitted_to_set(selection, against)
    return fitted_to_votes(replace(selection, **BY_SCORES._asdict()), against)


def parameters_of(
    recorded: Mapping[str, object], ties: TieModel | None, anchor: str | None
) -> BradleyTerryParameters:
    """Return the recorded parameters, overridden by --ties and --anchor."""
    anchored = {} if anchor is None else _anchor(anchor)
    return bradley_terry_parameters(recorded, {"ties": ties, **anchored})


def _anchor(text: str) -> dict[str, object]:
    """Parse ENTRANT[=RATING]; if the part after = is not a number, it belongs to the name."""
    name, _, number = text.rpartition("=")
    rating = _number(number)
    if not name or rating is None:
        return {"anchor": text}
    if abs(rating) > MAX_POINTS:
        limits = f"-{MAX_POINTS:,.0f} and {MAX_POINTS:,.0f}"
        raise ConfigurationError([f"--anchor {text!r}: a rating must be between {limits}"])
    return {"anchor": name, "anchor_rating": rating}


def weights_of(text: str, known: Collection[str]) -> dict[str, float]:
    """Parse --overall: the weight of each dimension."""
    weights: dict[str, float] = {}
    for part in text.split(","):
        dimension, _, number = part.strip().rpartition("=")
        weight = _number(number)
        if weight is None:
            raise ConfigurationError([f"--overall {text!r}: write it as factuality=2,utility=1"])
        if weight > _MAX_WEIGHT:
            raise ConfigurationError(
                [f"--overall {text!r}: a weight may be at most {_MAX_WEIGHT:,.0f}"]
            )
        weights[dimension] = weight
    require_known("--overall", weights, [*known])
    return weights


def _features_of(text: str) -> tuple[str, ...]:
    """Parse --control: the style features."""
    if text == _STYLE:
        return FEATURES
    features = tuple(part.strip() for part in text.split(","))
    require_known("--control", features, (*FEATURES, _STYLE))
    return features


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None
