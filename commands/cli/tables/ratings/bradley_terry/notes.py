"""Notes below Bradley-Terry ratings: groups, weights, imported battles, style."""

from collections.abc import Iterator, Mapping
from math import exp

import numpy as np

from commands.errors import MOST_NAMES, counted, joined_names
from ledger.identity import Json
from projections.battles.imported import BattlesOfSet
from projections.battles.vote_sampling import VoteSampling
from projections.intervals import known
from projections.ratings.bradley_terry.anchors import AnchoredRatings
from projections.ratings.bradley_terry.leaderboard import Leaderboard
from projections.ratings.bradley_terry.overall import OverallRatings
from projections.ratings.prediction_powered import CorrectedRatings
from projections.ratings.style import AdjustedRatings, Coefficient


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


def soft_scores_note(temperature: float, made_at: float | None = None) -> str:
    """Return the note on the temperature of soft scores."""
    made = "" if made_at is None else f", from preferences made at {made_at:g}"
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


def truth_notes(
    name: str, found: CorrectedRatings, sampling: VoteSampling, truth: str
) -> Iterator[str]:
    """Yield notes on how votes correct a judge, whether they can, and whether the judge helps."""
    yield from _sampling_notes(name, sampling)
    battles = found.battles
    unmatched = f" ({battles.n_unmatched:,} on other battles left out)" * bool(battles.n_unmatched)
    yield (
        f"{name}: {counted(battles.n_votes, 'vote')} of {truth!r}{unmatched} on"
        f" {counted(battles.n_prompts, 'prompt')} correct"
        f" {counted(len(battles.judged), 'battle')} of the judge, whose weight is"
        f" {found.share:.2f}; correlation {battles.correlation:.2f}."
    )
    if not battles.correlation >= found.least_correlation:
        yield (
            f"{name}: the judge agrees too little with people to help (correlation needed:"
            f" {found.least_correlation:.2f}): the votes alone are as good."
        )


def _sampling_notes(name: str, found: VoteSampling) -> Iterator[str]:
    """Yield warnings of votes that are no random sample of what the judge judged."""
    n, first, last = found.n_voted, found.prompts[0], found.prompts[-1]
    told = {
        "prompts": (
            f"their prompts ({len(found.prompts)} of {found.n_prompts}, between number {first} and"
            f" number {last}; a random sample has about {found.expected_prompts:.0f})"
        ),
        "entrants": (
            f"their entrants ({found.n_most} of {n} are on {' and '.join(found.most)}; a random"
            f" sample has about {found.expected_most:.0f})"
        ),
        "outcomes": (
            f"what the judge says of them (no winner: {found.no_winner[0]:.0%} of those voted on,"
            f" {found.no_winner[1]:.0%} of all)"
        ),
    }
    if found.doubts:
        yield (
            f"WARNING: {name}: the {n} battles voted on are no random sample of those judged, by"
            f" {', '.join(told[each] for each in found.doubts)}. Corrected ratings and intervals"
            " may be wrong; `tourney annotate` draws at random."
        )
    if found.without_vote:
        yield (
            f"WARNING: {name}: nobody voted on {joined_names(found.without_vote)}; whether the"
            " judge favours them is not known."
        )


def truth_facts(
    found: Mapping[str, CorrectedRatings], sampled: Mapping[str, VoteSampling]
) -> dict[str, Json]:
    """Return how votes correct a judge, for JSON."""
    return {
        "correction": {
            name: {
                "share": each.share,
                "correlation": known(each.battles.correlation),
                "least_correlation": each.least_correlation,
                "n_votes": each.battles.n_votes,
                "n_unmatched": each.battles.n_unmatched,
                "n_prompts": each.battles.n_prompts,
                "doubts": list(sampled[name].doubts),
                "without_vote": list(sampled[name].without_vote),
            }
            for name, each in found.items()
        }
    }
