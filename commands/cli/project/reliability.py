"""How far to trust judges and ratings.

`tourney project agreement`, `compare-judges`, `fragility`, `bias` and `calibration`.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

import typer

from commands.cli.shared import options
from commands.cli.shared.reading import (
    notes_of,
    outdated_note,
    read_outcomes,
    read_verdicts,
    show,
)
from commands.cli.shared.selection import (
    BATTLES,
    BY_RULE,
    JUDGED,
    OF_TOURNAMENT,
    WRITTEN,
    selecting,
)
from commands.cli.tables.reliability import (
    agreement_table,
    bias_table,
    calibration_table,
    fragility_table,
)
from commands.cli.tables.table import Table, table_of
from commands.errors import ConfigurationError, counted, joined_names
from commands.importing.imported_set import SelectedSet, imported_set
from commands.reading.judged_tournament import JudgedTournament, OutcomeSource
from commands.reading.resolve import on_dimension, require_known
from commands.reading.results import bias_rows, fragility_rows
from ledger.identity import Dimension, Json
from ledger.store import Ledger
from projections.battles.ballots import current_votes
from projections.ratings.gate import MARGIN
from projections.ratings.judge_comparison import (
    AgreementWithPeople,
    JudgeComparison,
    agreement_with_people,
    compare,
    shared_battles,
)
from projections.reliability.agreement import VotesByAnnotator, judge_tests
from projections.reliability.agreement import agreement as agreement_of
from projections.reliability.calibration import against_gold, against_verdicts
from projections.reliability.jurors import jury_agreement, jury_tests, votes_by_annotator
from projections.results.columns import RowType
from projections.results.judges import ChangedBattleRow, JudgeFlipRow, JudgeShiftRow
from projections.tournament.rewording import judge_versions
from projections.tournament.settlement import Settlement, by_dimension, settle
from projections.verdicts.policies import CONCATENATE, MAJORITY, RECORDED

_Votes: TypeAlias = Mapping[Dimension, VotesByAnnotator]
ComparisonTable: TypeAlias = Literal["shifts", "pairs", "battles"]


@selecting(*BATTLES, *WRITTEN)
def agreement(
    ctx: typer.Context,
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
        found = imported_set(opened, name, source.until or opened.head.position)
    current = current_votes(source.state, name, source.votes_of(found.events))
    votes = {on: votes_by_annotator(name, events) for on, events in current.on.items()}
    _require_known_prompts(source, name, votes)
    notes = (*outdated_note(name, current.n_outdated), *_unused_notes(source, name, votes))
    if not any(votes.values()):
        has_some = any(current.on.values())
        why = (
            "does not say who voted: import it with judge_model"
            if has_some
            else "has no vote on the chosen prompts"
        )
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


@selecting(*OF_TOURNAMENT, *WRITTEN)
def compare_judges(
    ctx: typer.Context,
    a: Annotated[str, typer.Argument(metavar="A", help="A judge, or a version of it: opus@1.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The judge to compare it with.")],
    margin: Annotated[
        float, typer.Option(min=0, help="Elo points by which ratings may move and be comparable.")
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
    compared = partial(
        _compared, names=(a, b), dimension=dimension, margin=margin, truth=truth, kind=kind
    )
    show(ctx, read_verdicts, compared)


def _compared(
    source: JudgedTournament,
    names: tuple[str, str],
    dimension: str | None,
    margin: float,
    truth: str | None,
    kind: ComparisonTable,
) -> Table:
    chosen = on_dimension(source.state, dimension)
    votes, notes = ({}, ()) if truth is None else _votes_of(source, truth)
    versions = judge_versions(source.state)
    settled = []
    require_known("judge", names, [*versions])
    if versions[names[0]] == versions[names[1]]:
        same = f"{names[0]} and {names[1]} are the same verdicts"
        raise ConfigurationError([f"{same}; name two judges, or two versions of one"])
    for name in names:
        found = versions[name].of(source.state)
        by = settle(found, {each.prompt_id for each in found.bank}, versions[name].judge)
        if not any(each.said or each.outcome for each in by):
            earlier = [each for each in versions if each.startswith(f"{name}@")][:-1]
            others = f", or name an earlier version: {', '.join(earlier)}" if earlier else ""
            fault = f"{name} has no verdict yet, as it and its texts are now"
            raise ConfigurationError([f"{fault}: run `tourney apply judge --judge {name}`{others}"])
        settled.append(by_dimension(found, by))
    comparisons: list[JudgeComparison] = []
    people: dict[str, AgreementWithPeople | None] = {}
    for on in (rubric.dimension for rubric in chosen.dimensions):
        shared = shared_battles(*(by.get(on, ()) for by in settled))
        comparisons.append(compare(on, shared, margin))
        people[on] = agreement_with_people(shared, votes.get(on, {}))
    return _comparison_table(names, comparisons, people, kind=kind, notes=notes)


def _pair_of(settlement: Settlement) -> tuple[Dimension, Hashable, frozenset[str]]:
    return settlement.dimension, settlement.prompt_id, settlement.pairing.entrants


@selecting(*BATTLES, *WRITTEN)
def fragility(
    ctx: typer.Context,
) -> None:
    """Show how few prompts decide who is ahead.

    Example: tourney project fragility --json
    """
    show(ctx, read_outcomes, _fragility)


def _fragility(source: OutcomeSource) -> Table:
    return fragility_table(
        fragility_rows(source), notes=notes_of(source), facts={"judge": source.judge_id}
    )


@selecting(*JUDGED, *WRITTEN)
def bias(
    ctx: typer.Context,
) -> None:
    """Show the judges' biases: slot, style, own family.

    Example: tourney project bias --judge reference
    """
    show(ctx, read_verdicts, lambda source: bias_table(bias_rows(source)))


@selecting(*BY_RULE, *WRITTEN)
def calibration(
    ctx: typer.Context,
    against: Annotated[
        Literal["gold", "judged"],
        typer.Option(
            help="What is correct. gold: containing the gold answer; judged: the share of wins."
        ),
    ] = "gold",
) -> None:
    """Compare each p_correct with actual correctness.

    Example: tourney project calibration --against judged
    """
    show(ctx, read_verdicts, partial(_calibration, against=against))


def _calibration(source: JudgedTournament, against: Literal["gold", "judged"]) -> Table:
    if against == "judged":
        found = against_verdicts(source.state, source.settlements)
        return calibration_table(found, source.judge, accounts=notes_of(source))
    if source.named_judge or source.named_dimension or source.rule != RECORDED:
        raise ConfigurationError(
            ["--judge, --dimension, --policy and --parser need --against judged"]
        )
    return calibration_table(against_gold(source.state))


People: TypeAlias = Mapping[str, AgreementWithPeople | None]
"""By dimension."""

_SHIFT: Final = (
    "Shift: of the Bradley-Terry rating, on the battles that both judges judged. Interval: 95 %,"
    " each prompt left out of both fits at once. Comparable: each interval lies within the margin."
)
_DIFFER: Final = "Differ: the two outcomes are not the same; opposite: they name opposite winners."


def _comparison_table(
    judges: tuple[str, str],
    comparisons: Sequence[JudgeComparison],
    people: People,
    *,
    kind: ComparisonTable,
    notes: Iterable[str] = (),
) -> Table:
    """Return the shift of each entrant, or the flips of each pair, or what flipped."""
    rows: Mapping[str, Sequence[NamedTuple]] = {
        "shifts": [row for each in comparisons for row in each.shifts],
        "pairs": [row for each in comparisons for row in each.flips],
        "battles": [row for each in comparisons for row in each.changed],
    }
    kinds: Mapping[str, tuple[RowType, str]] = {
        "shifts": (JudgeShiftRow, _SHIFT),
        "pairs": (JudgeFlipRow, _DIFFER),
        "battles": (ChangedBattleRow, "Read one with `tourney battle ID`."),
    }
    (row_kind, meaning), (a, b) = kinds[kind], judges
    return table_of(
        row_kind,
        rows[kind],
        f"tourney/compare-judges-{kind}@1",
        "Two judges on the same battles",
        notes=(
            f"A: {a}. B: {b}.",
            meaning,
            *_without_shift(comparisons, kind),
            *notes,
            *(said for each in comparisons for said in _said(each, people)),
        ),
        facts={
            "judge_a": a,
            "judge_b": b,
            "comparisons": [_data(each, people[each.dimension]) for each in comparisons],
        },
    )


def _without_shift(comparisons: Iterable[JudgeComparison], kind: ComparisonTable) -> Iterator[str]:
    for each in comparisons:
        for row in each.shifts if kind == "shifts" else ():
            if row.reason is not None:
                yield f"{each.dimension}: {row.entrant}: {row.reason}."


def _said(comparison: JudgeComparison, people: People) -> Iterator[str]:
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
    if (agreed := people[comparison.dimension]) is not None:
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
