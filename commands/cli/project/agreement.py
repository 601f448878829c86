"""`tourney project agreement` and `compare-judges`: judges compared, with each other or people."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

import typer

from commands.cli.shared import options
from commands.cli.shared.reading import outdated_note, read_outcomes, read_verdicts, show
from commands.cli.shared.selection import BATTLES, OF_TOURNAMENT, WRITTEN, Selected, selecting
from commands.cli.tables.table import Table, table_of
from commands.errors import ConfigurationError, counted, joined_names
from commands.importing.imported_set import SelectedSet, imported_set
from commands.reading.judged_tournament import JudgedTournament
from commands.reading.resolve import on_dimension, require_known
from ledger.identity import Dimension, Json
from ledger.store import Ledger
from projections.battles.ballots import current_votes
from projections.intervals import FEWEST_CLUSTERS
from projections.ratings.gate import MARGIN
from projections.ratings.judge_comparison import (
    AgreementWithPeople,
    JudgeComparison,
    agreement_with_people,
    compare,
    shared_battles,
)
from projections.reliability.agreement import (
    ADVANTAGE,
    ANNOTATOR_ADVANTAGE,
    COHEN,
    FLEISS,
    JUDGE_ADVANTAGE,
    KRIPPENDORFF,
    WINNING_RATE,
    JudgeTest,
    Measure,
    VotesByAnnotator,
    figures_of,
    judge_tests,
)
from projections.reliability.agreement import agreement as agreement_of
from projections.reliability.alternative_annotator import FEWEST_ANNOTATORS, FEWEST_BATTLES
from projections.reliability.jurors import (
    AS_RECORDED,
    jury_agreement,
    jury_tests,
    votes_by_annotator,
)
from projections.results.columns import RowType
from projections.results.judges import AgreementRow, ChangedBattleRow, JudgeFlipRow, JudgeShiftRow
from projections.tournament.compared import OPPOSITE, TIE_BESIDE_WIN
from projections.tournament.rewording import judge_versions
from projections.tournament.settlement import Settlement, by_dimension, settle
from projections.verdicts.policies import CONCATENATE, MAJORITY

_Votes: TypeAlias = Mapping[Dimension, VotesByAnnotator]
ComparisonTable: TypeAlias = Literal["shifts", "pairs", "battles"]
_Compared: TypeAlias = tuple[JudgeComparison, AgreementWithPeople | None]
"""Two judges on a dimension, and whom people agree with, if they voted."""


@selecting(*BATTLES, *WRITTEN)
def agreement(
    ctx: Selected,
    truth: Annotated[
        str | None, options.of_set("Compare the judges with the human votes of this imported set.")
    ] = None,
) -> None:
    """Show how consistent judges are and whether they agree.

    Example: tourney project agreement --json
    """
    show(ctx, read_outcomes, partial(_agreement, truth=truth))


def _agreement(source: JudgedTournament | SelectedSet, truth: str | None) -> Table:
    if isinstance(source, SelectedSet):
        if truth is not None:
            raise ConfigurationError(["--truth compares a tournament's judges: leave out --name"])
        measures = jury_agreement(source.name, source.events)
        return agreement_table(measures, tests=jury_tests(source.name, source.events))
    if source.rule.policy == MAJORITY:
        raise ConfigurationError(["agreement compares single judges: leave out --policy majority"])
    votes, notes = ({}, ()) if truth is None else _votes_of(source, truth)
    given = (source.state, source.prompts, source.state.panel, source.rule, votes)
    named, by_order = source.named_judge, source.rule.policy == CONCATENATE
    tests = () if by_order or not votes else judge_tests(*given)  # a person votes on pairs
    return agreement_table(
        (measure for measure in agreement_of(*given) if named in {None, *measure.judges}),
        tests=[test for test in tests if named in {None, test.judge}],
        by_order=by_order,
        notes=notes,
    )


def _votes_of(source: JudgedTournament, name: str) -> tuple[_Votes, Sequence[str]]:
    """Return what people voted, by dimension, and what is to be said of it."""
    with Ledger.read_only(source.ledger) as opened:
        selected_set = imported_set(opened, name, source.until or opened.head.position)
    current, n_outdated = current_votes(source.state, name, source.votes_of(selected_set.events))
    votes = {on: votes_by_annotator(name, events) for on, events in current.items()}
    _require_known_prompts(source, name, votes)
    notes = (*outdated_note(name, n_outdated), *_unused_notes(source, name, votes))
    if not any(votes.values()):
        why = "has no vote on the chosen prompts"
        if any(current.values()):
            why = "does not say who voted: import it with judge_model"
        raise ConfigurationError([" ".join(notes) or f"--truth {name!r} {why}"])
    return votes, notes


def _require_known_prompts(source: JudgedTournament, name: str, votes: _Votes) -> None:
    """Refuse votes none of which is about a prompt of the tournament: they have other ids."""
    bank = frozenset(prompt.prompt_id for prompt in source.state.bank)
    voted = {prompt for of in votes.values() for given in of.values() for prompt, _ in given}
    if voted and not voted & bank:
        why = f"no vote of {name!r} is about a prompt of this tournament"
        ids = f"{min(map(str, voted))!r} is no prompt_id, {min(bank)!r} is one"
        raise ConfigurationError([f"{why}: {ids}; correct question_id, and import again"])


def _unused_notes(source: JudgedTournament, name: str, votes: _Votes) -> Iterator[str]:
    """Say how many votes are compared with no judge, and why."""
    on = [
        (dimension, prompt, entrants)
        for dimension, of in votes.items()
        for given in of.values()
        for prompt, entrants in given
    ]
    prompts = source.prompts & {prompt for _, prompt, _ in on}
    settlements = [
        settlement
        for judge in source.state.panel
        for settlement in settle(source.state, prompts, judge, source.rule)
    ]
    identical = {_pair_of(it) for it in settlements if it.match and it.match.is_identical}
    judged = {_pair_of(it) for it in settlements if it.outcome is not None}
    for n, why in (
        (sum(pair in identical for pair in on), "both responses are identical"),
        (sum(pair not in identical | judged for pair in on), "no judge has an outcome there"),
    ):
        if n:
            yield f"{counted(n, 'vote')} of {name!r} left out: {why}."


_CASES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("order consistency", OPPOSITE, TIE_BESIDE_WIN), "pairs"),
    "share of A": "verdicts",
    "tie rate": "verdicts",
    "Spearman's rho": "entrants",
    "Kendall's tau-b": "entrants",
    ADVANTAGE: "annotators",
    JUDGE_ADVANTAGE: "battles",
    ANNOTATOR_ADVANTAGE: "battles",
}
_SLOTS: Final = "A share of A far from 0.5 shows a bias for the first or the second slot."
_TIES: Final = "Tie rate: of verdicts. Identical responses tie without a verdict."
_KAPPA: Final = (
    "Kappa: (agreement - by chance) / (1 - by chance). Each {case} has one category: its first"
    " entrant won, its second won, tie, or inconsistent."
)
_NO_JUDGES: Final = "No judge is named in these battles, so there is nothing to compare."
_RECORDED: Final = (
    "Majority: the outcome with most votes; none if two outcomes tie. Inconsistent judges have no"
    " vote. Agreement with the majority: over battles that have one. As recorded: the jury's"
    " verdict in the file."
)
_CHANCE: Final[Mapping[str, str]] = {
    COHEN: "Cohen's kappa (Cohen 1960): chance is taken from each judge's own shares.",
    FLEISS: "Fleiss' kappa (Fleiss 1971): chance is taken from the shares of all judges together.",
    KRIPPENDORFF: "Krippendorff's alpha (2011): likewise, over all that two or more judges judged;"
    " kappa needs each of them.",
}


_REPLACES: Final = (
    "Advantage: the share of battles on which the judge, or the annotator who is left out, agrees"
    " with at least as many of the other annotators as the other of the two. Winning rate at a"
    " margin: against how many annotators the judge's advantage is significantly above theirs less"
    " the margin (Calderon et al. 2025, clustered by prompt). From 0.5 on it may replace one."
)
_WHOM: Final = {
    0.1: "even a crowd worker",
    0.15: "if these are skilled annotators or experts",
    0.2: "if these are experts",
}
"""Whose price is worth which margin of agreement."""


def agreement_table(
    measures: Iterable[Measure],
    *,
    tests: Sequence[JudgeTest] = (),
    by_order: bool = False,
    notes: Iterable[str] = (),
) -> Table:
    """Return a row for each measure of one judge, or of several, over pairs or single orders."""
    measures = (*measures, *figures_of(tests))
    names = {measure.name for measure in measures}
    kappas = [said for name, said in _CHANCE.items() if name in names]
    definition = _KAPPA.format(case="order" if by_order else "pair")
    return table_of(
        AgreementRow,
        (
            AgreementRow(
                dimension=measure.dimension,
                judges=", ".join(measure.judges),
                measure=measure.name,
                value=measure.value,
                ci95_low=measure.low,
                ci95_high=measure.high,
                n=measure.n,
                n_of=_cases(measure.name, by_order=by_order),
            )
            for measure in measures
        ),
        "tourney/agreement@1",
        "Judges, one by one and compared",
        notes=(
            *([] if measures else [_NO_JUDGES]),
            *([_SLOTS] if "share of A" in names else []),
            *([_TIES] if "tie rate" in names else []),
            *((definition, *kappas) if kappas else ()),
            *([_RECORDED] if AS_RECORDED in names else []),
            *([_REPLACES] if ADVANTAGE in names else []),
            *notes,
            *map(use_of, tests),
        ),
        facts={"alternative_annotator_tests": [_test_data(judge_test) for judge_test in tests]},
    )


def use_of(tested: JudgeTest) -> str:
    """Say in a sentence what a judge may be used for, by the votes that there are."""
    dimension, judge, test, alone = tested
    margin = test.smallest_margin
    name = f"{dimension}, {judge}"
    if alone:
        share = f" ({alone.n_agreed / alone.n:.0%})" if alone.n else ""
        return (
            f"{name}: it agrees with {alone.annotator} on {alone.n_agreed} of"
            f" {counted(alone.n, 'battle')}{share}; whether it may replace an annotator takes the"
            f" votes of {FEWEST_ANNOTATORS}."
        )
    if not test.results:
        lacking = f"{counted(test.n_lacking, 'vote')} more, at least"
        if test.is_short_of_prompts:
            lacking = f"votes on {FEWEST_CLUSTERS} prompts, at least"
        so_far = ", ".join(f"{who} {n}" for who, n in test.n_by_annotator)
        return (
            f"{name}: whether it may replace an annotator is open. It takes {lacking}:"
            f" {FEWEST_ANNOTATORS} annotators with {FEWEST_BATTLES} battles each on which somebody"
            f" else voted, too (now: {so_far})."
        )
    if margin is not None:
        return f"{name}: it may replace an annotator, {_WHOM[margin]} (margin {margin:g})."
    more = "more votes like these would not change that"
    if (widest := test.results[-1]).n_more is not None:
        votes = f"about {widest.n_more:,} more votes like these"
        more = f"{votes} would let it at a margin of {widest.epsilon:g}"
    return (
        f"{name}: it should not replace an annotator; {more}. Use it together with people's votes:"
        " `tourney project bt --truth NAME`."
    )


def _test_data(tested: JudgeTest) -> Json:
    dimension, judge, test, _ = tested
    return {
        "dimension": dimension,
        "judge": judge,
        "advantage": test.advantage,
        "smallest_margin": test.smallest_margin,
        "annotators": [
            {
                **annotator._asdict(),
                "p": {
                    f"{result.epsilon:g}": annotator.p(result.epsilon) for result in test.results
                },
            }
            for annotator in test.annotators
        ],
        "results": [
            {
                "epsilon": result.epsilon,
                "winning_rate": result.winning_rate,
                "may_replace": result.is_passed,
                "n_more_votes": result.n_more,
            }
            for result in test.results
        ],
        "n_votes_lacking": test.n_lacking,
        "n_by_annotator": dict(test.n_by_annotator),
    }


def _cases(measure: str, *, by_order: bool) -> str:
    """Return what the n of a measure counts."""
    if measure in _CASES:
        return _CASES[measure]
    if measure.endswith(" rate"):
        return "queries"
    if measure.startswith(WINNING_RATE):
        return "annotators"
    return "orders" if by_order else "pairs"


@selecting(*OF_TOURNAMENT, *WRITTEN)
def compare_judges(
    ctx: Selected,
    a: Annotated[str, typer.Argument(metavar="A", help="A judge, or a version of it: opus@1.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The judge to compare it with.")],
    margin: Annotated[
        float,
        typer.Option(
            min=0,
            callback=options.finite,
            help="Elo points by which ratings may move and be comparable.",
        ),
    ] = MARGIN,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Show how often they differ, by pair of entrants.")
    ] = False,
    battles: Annotated[
        bool, typer.Option("--battles", help="List the battles on which they differ.")
    ] = False,
    truth: Annotated[
        str | None, options.of_set("Compare both with the human votes of this imported set.")
    ] = None,
    dimension: options.Dimension = None,
) -> None:
    """Show how far ratings move under another judge or wording.

    Example: tourney project compare-judges reference@1 reference
    """
    kind: ComparisonTable = "battles" if battles else "pairs" if pairs else "shifts"

    def view(source: JudgedTournament) -> Table:
        votes, notes = ({}, ()) if truth is None else _votes_of(source, truth)
        dimensions = [
            rubric.dimension for rubric in on_dimension(source.state, dimension).dimensions
        ]
        compared = [*_compared(source, (a, b), dimensions, margin, votes)]
        return _comparison_table((a, b), compared, kind, notes)

    show(ctx, read_verdicts, view)


def _compared(
    source: JudgedTournament,
    names: tuple[str, str],
    dimensions: Iterable[Dimension],
    margin: float,
    votes: _Votes,
) -> Iterator[_Compared]:
    """Yield how two judges differ on each dimension."""
    versions = judge_versions(source.state)
    settled = []
    require_known("judge", names, [*versions])
    if versions[names[0]] == versions[names[1]]:
        same = f"{names[0]} and {names[1]} are the same verdicts"
        raise ConfigurationError([f"{same}; name two judges, or two versions of one"])
    for name in names:
        tournament = versions[name].of(source.state)
        by = settle(
            tournament, {prompt.prompt_id for prompt in tournament.bank}, versions[name].judge
        )
        if not any(settlement.said or settlement.outcome for settlement in by):
            earlier = [version for version in versions if version.startswith(f"{name}@")][:-1]
            others = f", or name an earlier version: {', '.join(earlier)}" if earlier else ""
            fault = f"{name} has no verdict yet, as it and its texts are now"
            raise ConfigurationError([f"{fault}: run `tourney apply judge --judge {name}`{others}"])
        settled.append(by_dimension(tournament, by))
    for on in dimensions:
        shared = shared_battles(*(by.get(on, ()) for by in settled))
        yield compare(on, shared, margin), agreement_with_people(shared, votes.get(on, {}))


def _pair_of(settlement: Settlement) -> tuple[Dimension, Hashable, frozenset[str]]:
    return settlement.dimension, settlement.prompt_id, settlement.pairing.entrants


_SHIFT: Final = (
    "Shift: of the Bradley-Terry rating, on the battles that both judges judged. Interval: 95 %,"
    " each prompt left out of both fits at once. Comparable: each interval lies within the margin."
)
_DIFFER: Final = "Differ: the two outcomes are not the same; opposite: they name opposite winners."
_READ: Final = "Read one with `tourney battle ID`."


def _comparison_table(
    judges: tuple[str, str],
    compared: Sequence[_Compared],
    kind: ComparisonTable,
    notes: Iterable[str],
) -> Table:
    """Return the shift of each entrant, or the flips of each pair, or what flipped."""
    (a, b), comparisons = judges, [comparison for comparison, _ in compared]
    tables: Mapping[str, tuple[RowType, str, Sequence[Sequence[NamedTuple]]]] = {
        "shifts": (JudgeShiftRow, _SHIFT, [comparison.shifts for comparison in comparisons]),
        "pairs": (JudgeFlipRow, _DIFFER, [comparison.flips for comparison in comparisons]),
        "battles": (ChangedBattleRow, _READ, [comparison.changed for comparison in comparisons]),
    }
    row_kind, meaning, rows = tables[kind]
    return table_of(
        row_kind,
        chain.from_iterable(rows),
        f"tourney/compare-judges-{kind}@1",
        "Two judges on the same battles",
        notes=(
            f"A: {a}. B: {b}.",
            meaning,
            *(_without_shift(comparisons) if kind == "shifts" else ()),
            *notes,
            *(said for each in compared for said in _said(*each)),
        ),
        facts={
            "judge_a": a,
            "judge_b": b,
            "comparisons": [_data(*each) for each in compared],
        },
    )


def _without_shift(comparisons: Iterable[JudgeComparison]) -> Iterator[str]:
    for comparison in comparisons:
        for row in comparison.shifts:
            if row.reason is not None:
                yield f"{comparison.dimension}: {row.entrant}: {row.reason}."


def _said(comparison: JudgeComparison, agreed: AgreementWithPeople | None) -> Iterator[str]:
    """Yield how often both differ, whom people agree with, and the verdict."""
    n_changed = len(comparison.changed)
    n_opposite = sum(row.n_opposite for row in comparison.flips)
    n_read = sum(row.n for row in comparison.flips)
    read = counted(n_read, "battle")
    if n_read < comparison.n_battles:  # identical responses tie for every judge
        read += " of different responses"
    yield (
        f"{comparison.dimension}: they differ on {n_changed:,} of {read},"
        f" {n_opposite:,} with opposite winners (--pairs, --battles)."
    )
    if agreed is not None:
        bounds = ""
        if agreed.low is not None and agreed.high is not None:
            bounds = f" [{agreed.low:+.1%}, {agreed.high:+.1%}]"
        yield (
            f"{comparison.dimension}: of {counted(agreed.n_votes, 'vote')}, A agrees with"
            f" {agreed.by_a:.1%} and B with {agreed.by_b:.1%}: {agreed.gain:+.1%}{bounds}."
        )
    yield f"{comparison.dimension}: {_verdict(comparison)}"


def _verdict(comparison: JudgeComparison) -> str:
    margin = f"{comparison.margin:g} points"
    if comparison.verdict == "comparable":
        return f"comparable: no rating moves by more than {margin}."
    if comparison.verdict == "not comparable":
        moved = [
            row.entrant
            for row in comparison.shifts
            if row.shift is not None and abs(row.shift) > comparison.margin
        ]
        have = "has a rating that moves" if len(moved) == 1 else "have ratings that move"
        return f"not comparable: {joined_names(moved)} {have} by more than {margin}."
    n = f"{counted(comparison.n_battles, 'battle')} on {counted(comparison.n_prompts, 'prompt')}"
    needed = comparison.n_prompts_needed
    more = f"; about {needed:,} prompts would do, if shifts stay as they are" if needed else ""
    return f"not enough battles to say whether ratings are comparable within {margin}: {n}{more}."


def _data(comparison: JudgeComparison, agreed: AgreementWithPeople | None) -> Json:
    return {
        "dimension": comparison.dimension,
        "verdict": comparison.verdict,
        "margin": comparison.margin,
        "n_battles": comparison.n_battles,
        "n_prompts": comparison.n_prompts,
        "n_prompts_needed": comparison.n_prompts_needed,
        "n_changed": len(comparison.changed),
        "n_opposite": sum(row.n_opposite for row in comparison.flips),
        "people": None if agreed is None else {**agreed._asdict(), "gain": agreed.gain},
    }
