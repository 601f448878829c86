"""Bradley-Terry ratings, and differences of all pairs, as tables with their notes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import exp
from typing import Final, NamedTuple

import numpy as np

from commands.cli.tables.table import MoreColumn, Table, table_of
from commands.errors import MOST_NAMES, counted, joined_names
from ledger.events.ratings import BradleyTerryParameters
from ledger.identity import Json
from projections.battles.imported import BattlesOfSet
from projections.battles.soft_scores import TEMPERATURE
from projections.battles.voted import Doubt, VoteSampling
from projections.intervals import Floats, known
from projections.ratings.bradley_terry.anchors import AnchoredRatings
from projections.ratings.bradley_terry.component import MEAN_RATING
from projections.ratings.bradley_terry.leaderboard import Leaderboard, baseline_of, p_better, pairs
from projections.ratings.bradley_terry.overall import OverallRatings
from projections.ratings.bradley_terry.rate import BradleyTerryRatings, Zero
from projections.ratings.prediction_powered import CorrectedRatings
from projections.ratings.style import AdjustedRatings, Coefficient
from projections.results.columns import Column
from projections.results.ratings import BradleyTerryPair, BradleyTerryRow


def _unanchored_notes(
    board: Leaderboard, anchor: str, zeros: Mapping[tuple[Json, ...], Zero]
) -> Iterator[str]:
    """Yield a note on the entrants whose group lacks the anchor."""
    unanchored = [
        place.entrant
        for place in board.rows
        if place.rating is not None and {*zeros[board.name, place.entrant]} != {frozenset({anchor})}
    ]
    if unanchored:
        yield (
            f"{board.name}: {joined_names(unanchored)}: no link to the anchor {anchor}, so the"
            f" mean of their group is {MEAN_RATING:g}."
        )


def _by_reason(places: Iterable[tuple[str | None, BradleyTerryRow]]) -> dict[str, list[str]]:
    """Group entrants by reason; behind one without a rating stands its number of battles."""
    names: dict[str, list[str]] = {}
    for reason, place in places:
        n = place.n_battles if place.rating is None else 0
        if reason is not None:
            name = f"{place.entrant} ({counted(n, 'battle')})" if n else place.entrant
            names.setdefault(reason, []).append(name)
    return names


_WHY: Final[Mapping[str, str]] = {
    "undefeated": "undefeated, so without a finite rating",
    "winless": "winless, so without a finite rating",
    "one-way": "not rated: it won or lost every battle against each opponent",
    "not comparable": "not comparable: no battle links it to any other",
    "no finite fit": "not rated: the fit among its opponents is not finite",
    "not rated on every dimension": "not rated overall: it has no rating on some dimension",
    "no battle": "not rated: no decided battles",
}


class RatedBoards(NamedTuple):
    """Leaderboards with what is told above the notes on intervals, and further fields of JSON."""

    boards: Sequence[Leaderboard]
    parameters: BradleyTerryParameters
    notes: Iterable[str] = ()
    facts: Mapping[str, Json] = {}
    sources: Mapping[str, str] | None = None  # who judged each entrant's battles; None: no column
    zeros: Sequence[Sequence[Zero]] | None = None
    """The reference of each rating (anchor or group mean); None: as the leaderboards say."""

    def table(self, *, pairs: bool = False) -> Table:
        """Return the table of ratings, or of the differences of all pairs."""
        return _pairs_table(self) if pairs else _ratings_table(self)


def _ratings_table(rated: RatedBoards) -> Table:
    """Return a row for each entrant of each leaderboard, best first."""
    boards, parameters, zero_of = rated.boards, rated.parameters, _zeros(rated)
    rows = [place for board in boards for place in board.rows]
    is_divided = any(
        len({place.group for place in board.rows if place.rating is not None}) > 1
        for board in boards
    )
    ties = "ties as half" if parameters.ties == "half" else "ties by Davidson"
    prior = "" if parameters.prior_sd is None else f", prior of sd {parameters.prior_sd:g}"
    sources = rated.sources or {}
    source = MoreColumn(Column("Source", key="source"), [sources.get(row.entrant) for row in rows])
    table = table_of(
        BradleyTerryRow,
        rows,
        "tourney/bt@1",
        f"Bradley-Terry, {ties}{prior}",
        more=[source] if sources else (),
        hidden=() if is_divided else {"group"},
        headings=_bounds(parameters),
        notes=(
            *rated.notes,
            _interval(parameters),
            *(note for board in boards for note in _notes(board, parameters, zero_of)),
        ),
        facts={
            "parameters": parameters.fields,
            "fits": {board.name: _fit(board) for board in boards},
            **rated.facts,
        },
    )
    return replace(table, zeros={"rating": zero_of})


def _bounds(parameters: BradleyTerryParameters) -> Mapping[str, str]:
    percent = f"{100 * parameters.level:g} %"
    return {"low": f"{percent} low", "high": f"{percent} high"}


def _zeros(rated: RatedBoards) -> dict[tuple[Json, ...], Zero]:
    """Return the reference of each rating, by dimension and entrant."""
    own = (tuple((zero,) for zero in board.ratings.zeros()) for board in rated.boards)
    return {
        (board.name, entrant): zero
        for board, references in zip(rated.boards, rated.zeros or own, strict=True)
        for entrant, zero in zip(board.ratings.entrants, references, strict=True)
    }


def _interval(parameters: BradleyTerryParameters) -> str:
    """Return the note on the method, level and clusters of intervals, and on ranks."""
    kind = (
        f"cluster-robust (sandwich), clusters: {parameters.unit}"
        if parameters.interval == "sandwich"
        else f"{parameters.resamples:,} {parameters.interval} resamples of {parameters.unit}"
    )
    return (
        f"Low and high: {100 * parameters.level:g} % interval, {kind}. Rank: from 1 + how many are"
        " significantly better to how many are not significantly worse; all pairs tested at once."
    )


def _notes(
    board: Leaderboard,
    parameters: BradleyTerryParameters,
    zeros: Mapping[tuple[Json, ...], Zero],
) -> Iterator[str]:
    if parameters.anchor != board.ratings.parameters.anchor:
        yield f"{board.name}: the anchor {parameters.anchor} has no battles; the mean is 1000."
    elif parameters.anchor is not None:
        yield from _unanchored_notes(board, parameters.anchor, zeros)
    yield from order_notes(board)
    for reason, entrants in _by_reason((place.reason, place) for place in board.rows).items():
        be = "is" if len(entrants) == 1 else "are"
        yield f"{board.name}: {joined_names(entrants)} {be} {_WHY[reason]}."
    for why, entrants in _by_reason((place.no_interval, place) for place in board.rows).items():
        have = "has" if len(entrants) == 1 else "have"
        yield f"{board.name}: {joined_names(entrants)} {have} no interval ({why})."
    for number, n in enumerate(board.ratings.n_without_fit.tolist(), start=1):
        if n:
            group = f" of group {number}" if len(board.groups) > 1 else ""
            resamples = f"{n:,} of {counted(parameters.resamples, 'resample')}{group}"
            yield f"{board.name}: {resamples} had no finite fit and count as beyond both bounds."


def _fit(board: Leaderboard) -> Json:
    """Return the fields of a fit beyond its rows; `bt --pairs` has its matrices."""
    ratings = board.ratings
    return {
        "groups": [list(group) for group in board.groups],
        "above": [list(pair) for pair in board.above],
        "anchor": ratings.parameters.anchor,
        "nu": known_values(ratings.nu),
        "n_without_fit": ratings.n_without_fit.tolist(),
    }


def _pairs_table(rated: RatedBoards) -> Table:
    """Return a row for each pair of entrants of a group, the largest difference first."""
    return table_of(
        BradleyTerryPair,
        (pair for board in rated.boards for pair in pairs(board.ratings, board.name)),
        "tourney/bt-pairs@1",
        "Bradley-Terry, differences of all pairs",
        headings=_bounds(rated.parameters),
        notes=(
            *rated.notes,
            (
                "Low, high and p hold for all pairs at once: single-step max-t, simulated from the"
                f" covariance of all ratings with seed {rated.parameters.seed}."
            ),
            *_planned_notes(rated),
        ),
        facts={
            "parameters": rated.parameters.fields,
            "adjustment": "max-t",
            "fits": {board.name: _matrices(board.ratings) for board in rated.boards},
            **rated.facts,
        },
    )


def _planned_notes(rated: RatedBoards) -> Iterator[str]:
    """Yield which differences the critical value is of, where one entrant is in every battle."""
    for board in rated.boards:
        if (baseline := baseline_of(board.ratings)) is not None:
            yield (
                f"{board.name}: {board.ratings.entrants[baseline]} is in every battle, so the"
                " differences from it are tested; the reach of any other is the sum of two of"
                " theirs."
            )


def _matrices(ratings: BradleyTerryRatings) -> Json:
    """Return what is known of all pairs, (n, n) each; entrants in alphabetical order."""
    return {
        "entrants": list(ratings.entrants),
        "covariance": known_values(ratings.covariance),
        "p_better": known_values(p_better(ratings)),
    }


def known_values(values: Floats) -> Json:
    """Return numbers of any shape as lists, with null for those that are not finite."""
    known = values.astype(object)
    known[~np.isfinite(values)] = None
    numbers: Json = known.tolist()
    return numbers


def order_notes(board: Leaderboard) -> Iterator[str]:
    """Yield notes on the order of groups whose ratings do not compare."""
    groups, above = board.groups, board.ratings.components.above
    if len(groups) <= 1:
        return
    yield f"{board.name}: {len(groups)} groups; ratings compare only within a group."
    for upper, group in enumerate(groups[:MOST_NAMES]):
        lower = [name for below in np.flatnonzero(above[upper]) for name in groups[below]]
        if lower:
            yield (
                f"{board.name}: {joined_names(lower)} won nothing against {joined_names(group)},"
                " which alone shows no order; see the intervals of `tourney project winrates`."
            )
        elif not above[:, upper].any() and len(group) > 1:
            yield f"{board.name}: {joined_names(group)} not comparable with others."
    if len(groups) > MOST_NAMES:
        yield f"{board.name}: JSON output has the order of all groups."


def weights_note(ratings: OverallRatings) -> str:
    """Return the note on the weights of an overall rating."""
    shares = " + ".join(f"{part.share:.3g} {part.dimension}" for part in ratings.parts)
    return f"overall = {shares}; the dimensions of a prompt are one cluster of its interval."


def missing_notes(board: Leaderboard, ratings: OverallRatings) -> Iterator[str]:
    """Yield notes on the dimensions that an entrant has no rating on."""
    for place in board.rows:
        if place.rating is None and place.group is not None:
            for dimension, reason in ratings.missing(place.entrant):
                yield f"{place.entrant} has no rating on {dimension}: {reason}."


def coefficient_note(board: Leaderboard, coefficient: Coefficient) -> str:
    """Return the note on the effect of a style feature."""
    said = (
        f"{board.name}: one standard deviation more of {coefficient.feature} multiplies the odds by"
        f" {exp(coefficient.beta):.2f}"
    )
    confounded = (
        f" WARNING: who wrote the responses explains {coefficient.between_entrants:.0%} of it, so"
        " this cannot be told from strengths, nor these ratings from others."
    ) * coefficient.is_confounded
    if coefficient.lower is None or coefficient.upper is None:
        return f"{said} (no interval: all battles are on one prompt).{confounded}"
    return f"{said} ({exp(coefficient.lower):.2f} to {exp(coefficient.upper):.2f}).{confounded}"


def left_out_note(board: Leaderboard, ratings: AdjustedRatings) -> str:
    """Return the note on style features that are the same in all battles."""
    names = joined_names(ratings.left_out)
    return f"{board.name}: left out, since they are the same in all pairs of responses: {names}."


def imported_note(name: str, battles: BattlesOfSet, *, soft: bool) -> str:
    """Return the note on how many imported battles have which outcome, and on preferences."""
    said = f"{name}: {battles.account.sentence()}"
    n_prefs = int((~np.isnan(battles.pref)).sum())
    if not n_prefs:
        return said
    how = "count as preferences (soft)" if soft else "count only who won (hard)"
    return f"{said}; {n_prefs} with a preference {how}"


def soft_scores_note(temperature: float, *, converted: bool = False) -> str:
    """Return the note on the temperature of soft scores."""
    made = f", from preferences made at {TEMPERATURE}" if converted else ""
    return f"Soft scores: a judge's scores at temperature {temperature:g}{made}."


def among_note(name: str, among: AnchoredRatings) -> str:
    """Return the note on how far the anchors' ratings are from those by human votes alone."""
    if among.mae is None:
        return (
            f"{name}: no MAE (no two anchors are compared by human votes and linked by judges'"
            " battles, too)."
        )
    n_anchors = len(among.judged_differences)
    return f"{name}: MAE {among.mae:.1f} Elo of {n_anchors} anchors against human votes alone."


class Corrected(NamedTuple):
    """Ratings by a judge that a truth corrects, and whether the truth is a fair sample."""

    rated: CorrectedRatings
    sampled: VoteSampling

    @property
    def facts(self) -> dict[str, Json]:
        """How the judge is corrected, for JSON."""
        battles = self.rated.battles
        return {
            "share": self.rated.share,
            "correlation": known(battles.correlation),
            "least_correlation": self.rated.least_correlation,
            "n_votes": battles.n_votes,
            "n_unmatched": battles.n_unmatched,
            "n_prompts": battles.n_prompts,
            "doubts": list(self.sampled.doubts),
            "without_vote": list(self.sampled.without_vote),
        }


def truth_notes(corrected: Mapping[str, Corrected], truth: str) -> Iterator[str]:
    """Yield notes on how votes correct a judge, whether they can, and whether the judge helps."""
    for name, (rated, sampled) in corrected.items():
        yield from _sampling_notes(name, sampled, "`tourney annotate` draws at random")
        battles = rated.battles
        left_out = _left_out(battles.n_unmatched, "on other battles")
        yield (
            f"{name}: {counted(battles.n_votes, 'vote')} of {truth!r}{left_out} on"
            f" {counted(battles.n_prompts, 'prompt')} correct"
            f" {counted(len(battles.judged), 'battle')} of the judge, {_weight(rated)}"
        )
        if not battles.correlation >= rated.least_correlation:
            yield (
                f"{name}: the judge agrees too little with people to help (correlation needed:"
                f" {rated.least_correlation:.2f}): the votes alone are as good."
            )


def cascade_notes(corrected: Mapping[str, Corrected], truth: str) -> Iterator[str]:
    """Yield notes on how a judge corrects another, and whether that helps."""
    remedy = f"give [[jury]] {truth!r} a `share`, which draws at random, and judge all of it"
    for name, (rated, sampled) in corrected.items():
        yield from _sampling_notes(name, sampled, remedy)
        battles = rated.battles
        left_out = _left_out(battles.n_unmatched, "that only it judged")
        yield (
            f"{name}: {truth} is the truth: its outcomes of {counted(battles.n_votes, 'pair')}"
            f"{left_out} on {counted(battles.n_prompts, 'prompt')} correct"
            f" {counted(len(battles.judged), 'pair')} on {sampled.n_prompts}, {_weight(rated)}"
        )


def _left_out(n: int, which: str) -> str:
    return f" ({n:,} {which} left out)" if n else ""


def _weight(rated: CorrectedRatings) -> str:
    return f"whose weight is {rated.share:.2f}; correlation {rated.battles.correlation:.2f}."


def _sampling_notes(name: str, sampling: VoteSampling, remedy: str) -> Iterator[str]:
    """Yield warnings of votes that are no random sample of what the judge judged."""
    if sampling.doubts:
        differences = ", ".join(_difference(sampling, doubt) for doubt in sampling.doubts)
        yield (
            f"WARNING: {name}: the {sampling.n_voted} battles voted on are no random sample of"
            f" those judged, by {differences}. Corrected ratings and intervals"
            f" may be wrong; {remedy}."
        )
    if sampling.without_vote:
        yield (
            f"WARNING: {name}: nobody voted on {joined_names(sampling.without_vote)}; whether the"
            " judge favours them is not known."
        )


def _difference(sampling: VoteSampling, doubt: Doubt) -> str:
    """Say in what battles that were voted on differ from those that the judge judged."""
    match doubt:
        case "prompts":
            first, last, n = sampling.prompts[0], sampling.prompts[-1], len(sampling.prompts)
            expected = f"a random sample has about {sampling.expected_prompts:.0f}"
            of = f"{n} of {sampling.n_prompts}, between number {first} and number {last}"
            return f"their prompts ({of}; {expected})"
        case "entrants":
            expected = f"a random sample has about {sampling.expected_most:.0f}"
            most = f"{sampling.n_most} of {sampling.n_voted} are on {' and '.join(sampling.most)}"
            return f"their entrants ({most}; {expected})"
        case _:
            voted, every = sampling.no_winner
            shares = f"no winner: {voted:.0%} of those voted on, {every:.0%} of all"
            return f"what the judge says of them ({shares})"
