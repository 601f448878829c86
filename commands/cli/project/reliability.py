"""How far to trust judges and ratings.

`tourney project agreement`, `compare-judges`, `fragility`, `bias` and `calibration`; a temperature
for `bt`.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Annotated, Final, Literal, TypeAlias

import typer

from commands.cli.project.bt_options import require_temperature
from commands.cli.shared import options
from commands.cli.shared.imported_set import (
    SetOptions,
    human_set,
    outdated_note,
    read_set,
    require_no_tournament,
    votes_of,
    votes_on_record,
)
from commands.cli.shared.reading import Selection, notes_of, pinned, read_verdicts
from commands.cli.shared.views import (
    battles_view,
    outcomes_view,
    table_command,
    tournament_view,
    with_source,
)
from commands.cli.tables.judge_comparison import ComparisonTable, comparison_table
from commands.cli.tables.reliability import (
    agreement_table,
    bias_table,
    calibration_table,
    fragility_table,
    temperature_table,
)
from commands.cli.tables.table import Table
from commands.errors import ConfigurationError, counted
from commands.importing.imported_set import SelectedSet, imported_set
from commands.runs.judged_tournament import JudgedTournament, OutcomeSource
from commands.runs.reading.results import bias_rows, fragility_rows
from commands.runs.resolve import on_dimension, unknown
from ledger.identity import Dimension
from ledger.store import Ledger
from projections.battles import settled
from projections.battles.ballots import current_votes
from projections.battles.soft_scores import TEMPERATURE
from projections.ratings.judge_comparison import (
    MARGIN,
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
from projections.tournament.rewording import judge_versions
from projections.tournament.settlement import Settlement, by_dimension, settle
from projections.verdicts.policies import CONCATENATE, MAJORITY, RECORDED

_FIT: Final = "--fit-temperature"  # of `tourney project bt`
_Votes: TypeAlias = Mapping[Dimension, VotesByAnnotator]


@battles_view
def agreement(
    source: JudgedTournament | SelectedSet,
    truth: Annotated[
        str | None, options.of_set("Compare the judges with the human votes of this imported set.")
    ] = None,
) -> Table:
    """Show how consistent judges are and whether they agree.

    Example: tourney project agreement --json
    """
    if isinstance(source, SelectedSet):
        if truth is not None:
            raise ConfigurationError(["--truth compares a tournament's judges: leave out --name"])
        measures = jury_agreement(source.name, source.events)
        return agreement_table(measures, tests=jury_tests(source.name, source.events))
    if source.rule.policy == MAJORITY:
        raise ConfigurationError(["agreement compares single judges: leave out --policy majority"])
    prompts = frozenset(prompt.prompt_id for prompt in source.state.bank)
    votes, notes = ({}, ()) if truth is None else _votes_of(source, truth)
    given = (source.state, prompts, source.state.panel, source.rule, votes)
    named, by_order = source.named_judge, source.rule.policy == CONCATENATE
    tests = () if by_order or not votes else judge_tests(*given)  # a person votes on pairs
    return agreement_table(
        (each for each in agreement_of(*given) if named in {None, *each.judges}),
        tests=[each for each in tests if named in {None, each.judge}],
        by_order=by_order,
        notes=notes,
    )


def _votes_of(source: JudgedTournament, name: str) -> tuple[_Votes, Sequence[str]]:
    """Return what people voted, by dimension, and what is to be said of it."""
    with Ledger.read_only(source.ledger) as opened:
        found = imported_set(opened, name, source.until or opened.head.position)
    current = current_votes(source.state, name, found.events)
    votes = {on: votes_by_annotator(name, events) for on, events in current.on.items()}
    notes = (*outdated_note(name, current.n_outdated), *_unused_notes(source, name, votes))
    if not any(votes.values()):
        why = " ".join(notes) or f"--truth {name!r} names nobody who voted"
        raise ConfigurationError([why])
    return votes, notes


def _unused_notes(source: JudgedTournament, name: str, votes: _Votes) -> Iterator[str]:
    """Say how many votes are compared with no judge, and why."""
    on = [
        (dimension, prompt, entrants)
        for dimension, of in votes.items()
        for given in of.values()
        for prompt, entrants in given
    ]
    bank = frozenset(prompt.prompt_id for prompt in source.state.bank)
    prompts = bank & {prompt for _, prompt, _ in on}
    settlements = [
        each
        for judge in source.state.panel
        for each in settle(source.state, prompts, judge, source.rule)
    ]
    identical = {_pair_of(each) for each in settlements if each.match and each.match.is_identical}
    judged = {_pair_of(each) for each in settlements if each.outcome is not None}
    for n, why in (
        (sum(pair in identical for pair in on), "both responses are identical"),
        (sum(pair not in identical | judged for pair in on), "no judge has an outcome there"),
    ):
        if n:
            yield f"{counted(n, 'vote')} of {name!r} left out: {why}."


def _compare_judges(
    selection: Selection,
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
) -> Table:
    """Show how far ratings move under another judge or wording.

    Example: tourney project compare-judges reference@1 reference
    """
    source = read_verdicts(selection._replace(dimension=None))
    chosen = on_dimension(source.state, selection.dimension)
    votes, notes = ({}, ()) if truth is None else _votes_of(source, truth)
    versions = judge_versions(source.state)
    settled = []
    for name in (a, b):
        if name not in versions:
            raise unknown("judge", name, [*versions])
        found = versions[name].of(source.state)
        by = settle(found, {each.prompt_id for each in found.bank}, versions[name].judge)
        settled.append(by_dimension(found, by))
    comparisons: list[JudgeComparison] = []
    people: dict[str, AgreementWithPeople | None] = {}
    for dimension in (each.dimension for each in chosen.dimensions):
        shared = shared_battles(*(by.get(dimension, ()) for by in settled))
        comparisons.append(compare(dimension, shared, margin))
        people[dimension] = agreement_with_people(shared, votes.get(dimension, {}))
    kind: ComparisonTable = "battles" if battles else "pairs" if pairs else "shifts"
    table = comparison_table((a, b), comparisons, people, kind=kind, notes=notes)
    return with_source(table, source)


compare_judges = table_command(_compare_judges, without={"policy", "parser", "diff", "judge"})


def _pair_of(settlement: Settlement) -> tuple[Dimension, Hashable, frozenset[str]]:
    return settlement.dimension, settlement.prompt_id, settlement.pairing.entrants


@battles_view
def fragility(source: OutcomeSource) -> Table:
    """Show how few prompts decide who is ahead.

    Example: tourney project fragility --json
    """
    return fragility_table(
        fragility_rows(source), notes=notes_of(source), facts={"judge": source.judge_id}
    )


@tournament_view
def bias(source: JudgedTournament) -> Table:
    """Show the judges' biases: slot, style, own family.

    Example: tourney project bias --judge reference
    """
    return bias_table(bias_rows(source))


@outcomes_view
def calibration(
    source: JudgedTournament,
    against: Annotated[
        Literal["gold", "judged"],
        typer.Option(
            help="What is correct. gold: containing the gold answer; judged: the share of wins."
        ),
    ] = "gold",
) -> Table:
    """Compare each p_correct with actual correctness.

    Example: tourney project calibration --against judged
    """
    if against == "judged":
        found = against_verdicts(source.state, source.settlements)
        return calibration_table(found, source.judge, accounts=notes_of(source))
    if source.named_judge or source.named_dimension or source.rule != RECORDED:
        raise ConfigurationError(
            ["--judge, --dimension, --policy and --parser need --against judged"]
        )
    return calibration_table(against_gold(source.state))


def fitted_temperature(
    selection: Selection, chosen: SetOptions, against: str, made_at: float | None
) -> Table:
    """Fit the temperature of a judge's scores: of an imported set, else of the tournament's."""
    require_temperature("--made-at", made_at)
    selection = pinned(selection)
    where = chosen.kept
    if chosen.name is None:
        return _of_tournament(selection, against)
    require_no_tournament(selection)
    made_at = TEMPERATURE if made_at is None else made_at
    judged = read_set(selection, chosen.name, where, chosen.unread)
    marked = settled.scored_preferences(judged.battles, made_at=made_at)
    return temperature_table(
        [settled.calibrate_judge(judged.name, marked, votes_of(selection, against, _FIT))],
        notes=[
            *judged.selected_by,
            f"{judged.name}: preferences are taken as made at temperature {made_at:g} (--made-at).",
        ],
        facts={**judged.facts, "against": against, "made_at": made_at},
    )


def _of_tournament(selection: Selection, against: str) -> Table:
    source = read_verdicts(selection._replace(**settled.BY_SCORES._asdict()))
    votes = votes_on_record(source, human_set(selection, against, _FIT), _FIT)
    found = [
        settled.calibrate_judge(
            dimension,
            settled.scored_orders(source.state, group),
            votes.battles(dimension),
            source.state.same_texts,
        )
        for dimension, group in source.settlements.items()
    ]
    notes = [*notes_of(source), *votes.notes]
    facts = {"judge": source.judge_id, "against": against}
    return with_source(temperature_table(found, notes=notes, facts=facts), source)
