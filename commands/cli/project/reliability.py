"""How far to trust judges and ratings.

`tourney project agreement`, `compare-judges`, `fragility`, `bias` and `calibration`; a temperature
for `bt`.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Final, Literal, TypeAlias

import typer

from commands.cli.project.bt_options import require_temperature
from commands.cli.shared import options
from commands.cli.shared.imported_set import (
    human_set,
    outdated_note,
    read_outcomes,
    read_set,
    require_no_tournament,
    votes_of,
    votes_on_record,
)
from commands.cli.shared.ledger import DEFAULT_CONFIG
from commands.cli.shared.output import Writer
from commands.cli.shared.reading import Selection, SetSelection, notes_of, pinned, read_verdicts
from commands.cli.shared.views import (
    show,
    view_of,
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
from commands.cli.tables.render import Format
from commands.cli.tables.table import Table
from commands.errors import ConfigurationError, counted
from commands.importing.imported_set import SelectedSet, imported_set
from commands.reading.judged_tournament import JudgedTournament, OutcomeSource
from commands.reading.resolve import on_dimension, unknown
from commands.reading.results import bias_rows, fragility_rows
from ledger.identity import Dimension
from ledger.store import Ledger
from projections.battles import settled
from projections.battles.ballots import current_votes
from projections.battles.soft_scores import TEMPERATURE
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
from projections.tournament.rewording import judge_versions
from projections.tournament.settlement import Settlement, by_dimension, settle
from projections.verdicts.policies import CONCATENATE, DEFAULT_POLICY, MAJORITY, RECORDED

_FIT: Final = "--fit-temperature"  # of `tourney project bt`
_Votes: TypeAlias = Mapping[Dimension, VotesByAnnotator]


def agreement(
    truth: Annotated[
        str | None, options.of_set("Compare the judges with the human votes of this imported set.")
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
    output_format: options.OutputFormat = Format.TABLE,
    as_json: options.AsJson = False,
) -> None:
    """Show how consistent judges are and whether they agree.

    Example: tourney project agreement --json
    """
    imported = SetSelection(name, where, unread)
    selection = Selection(
        config, ledger, tournament, as_of, judge, dimension, policy, parser, imported
    )
    table_of = view_of(read_outcomes, partial(_agreement, truth=truth))
    show(table_of, selection, Writer(output_format, as_json))


def _agreement(source: JudgedTournament | SelectedSet, truth: str | None) -> Table:
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
        (measure for measure in agreement_of(*given) if named in {None, *measure.judges}),
        tests=[test for test in tests if named in {None, test.judge}],
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


def compare_judges(
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
    config: options.Config = DEFAULT_CONFIG,
    ledger: options.Ledger = None,
    tournament: options.Tournament = None,
    as_of: options.AsOf = None,
    dimension: options.Dimension = None,
    output_format: options.OutputFormat = Format.TABLE,
    as_json: options.AsJson = False,
) -> None:
    """Show how far ratings move under another judge or wording.

    Example: tourney project compare-judges reference@1 reference
    """
    kind: ComparisonTable = "battles" if battles else "pairs" if pairs else "shifts"
    compared = partial(
        _compared, names=(a, b), dimension=dimension, margin=margin, truth=truth, kind=kind
    )
    selection = Selection(config, ledger, tournament, as_of)
    show(view_of(read_verdicts, compared), selection, Writer(output_format, as_json))


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
    for name in names:
        if name not in versions:
            raise unknown("judge", name, [*versions])
    if versions[names[0]] == versions[names[1]]:
        same = f"{names[0]} and {names[1]} are the same verdicts"
        raise ConfigurationError([f"{same}; name two judges, or two versions of one"])
    for name in names:
        found = versions[name].of(source.state)
        by = settle(found, {each.prompt_id for each in found.bank}, versions[name].judge)
        settled.append(by_dimension(found, by))
    comparisons: list[JudgeComparison] = []
    people: dict[str, AgreementWithPeople | None] = {}
    for on in (rubric.dimension for rubric in chosen.dimensions):
        shared = shared_battles(*(by.get(on, ()) for by in settled))
        comparisons.append(compare(on, shared, margin))
        people[on] = agreement_with_people(shared, votes.get(on, {}))
    return comparison_table(names, comparisons, people, kind=kind, notes=notes)


def _pair_of(settlement: Settlement) -> tuple[Dimension, Hashable, frozenset[str]]:
    return settlement.dimension, settlement.prompt_id, settlement.pairing.entrants


def fragility(
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
    output_format: options.OutputFormat = Format.TABLE,
    as_json: options.AsJson = False,
) -> None:
    """Show how few prompts decide who is ahead.

    Example: tourney project fragility --json
    """
    imported = SetSelection(name, where, unread)
    selection = Selection(
        config, ledger, tournament, as_of, judge, dimension, policy, parser, imported
    )
    show(view_of(read_outcomes, _fragility), selection, Writer(output_format, as_json))


def _fragility(source: OutcomeSource) -> Table:
    return fragility_table(
        fragility_rows(source), notes=notes_of(source), facts={"judge": source.judge_id}
    )


def bias(
    config: options.Config = DEFAULT_CONFIG,
    ledger: options.Ledger = None,
    tournament: options.Tournament = None,
    as_of: options.AsOf = None,
    judge: options.Judge = None,
    dimension: options.Dimension = None,
    output_format: options.OutputFormat = Format.TABLE,
    as_json: options.AsJson = False,
) -> None:
    """Show the judges' biases: slot, style, own family.

    Example: tourney project bias --judge reference
    """
    selection = Selection(config, ledger, tournament, as_of, judge, dimension)
    show(view_of(read_verdicts, _bias), selection, Writer(output_format, as_json))


def _bias(source: JudgedTournament) -> Table:
    return bias_table(bias_rows(source))


def calibration(
    against: Annotated[
        Literal["gold", "judged"],
        typer.Option(
            help="What is correct. gold: containing the gold answer; judged: the share of wins."
        ),
    ] = "gold",
    config: options.Config = DEFAULT_CONFIG,
    ledger: options.Ledger = None,
    tournament: options.Tournament = None,
    as_of: options.AsOf = None,
    judge: options.Judge = None,
    dimension: options.Dimension = None,
    policy: options.Policy = DEFAULT_POLICY,
    parser: options.Parser = None,
    output_format: options.OutputFormat = Format.TABLE,
    as_json: options.AsJson = False,
) -> None:
    """Compare each p_correct with actual correctness.

    Example: tourney project calibration --against judged
    """
    selection = Selection(config, ledger, tournament, as_of, judge, dimension, policy, parser)
    table_of = view_of(read_verdicts, partial(_calibration, against=against))
    show(table_of, selection, Writer(output_format, as_json))


def _calibration(source: JudgedTournament, against: Literal["gold", "judged"]) -> Table:
    if against == "judged":
        found = against_verdicts(source.state, source.settlements)
        return calibration_table(found, source.judge, accounts=notes_of(source))
    if source.named_judge or source.named_dimension or source.rule != RECORDED:
        raise ConfigurationError(
            ["--judge, --dimension, --policy and --parser need --against judged"]
        )
    return calibration_table(against_gold(source.state))


def fitted_temperature(selection: Selection, against: str, made_at: float | None) -> Table:
    """Fit the temperature of a judge's scores: of an imported set, else of the tournament's."""
    require_temperature("--made-at", made_at)
    selection = pinned(selection)
    chosen, where = selection.imported, selection.imported.kept
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
