"""The golden screens: what each format, and each table, looks like to a user.

`python -m tests.support.goldens.screens` writes them into tests/golden/screens, after a change that
is meant to be seen; the difference is then reviewed like code.
"""

import io
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from rich.console import Console

from commands.auditing.replay import Difference, Replayed
from commands.auditing.verify import Verification
from commands.cli.audit import differences_table, faults_table, log_table
from commands.cli.imports import conflicts_table
from commands.cli.project.elo import elo_table
from commands.cli.project.outcomes import (
    matches_table,
    progress_table,
    responses_table,
    winrates_table,
)
from commands.cli.project.reliability import calibration_table
from commands.cli.tables.bradley_terry import RatedBoards
from commands.cli.tables.plan import missing_responses_table, missing_verdicts_table
from commands.cli.tables.render import Format, print_table
from commands.cli.tables.table import Table, difference_table
from commands.decisions.recorder import (
    MissingVerdicts,
    Recorder,
    count_missing_responses,
    count_missing_verdicts,
)
from commands.entrants.generate import generate_missing
from commands.importing.merge import MergeCounts
from commands.judging.judge import JudgeTask, judge_open
from commands.ports import GenerationFailure, GenerationTask, no_progress
from ledger.auditing.audit import Fault
from ledger.chain import Head
from ledger.events.ratings import BradleyTerryParameters, EloParameters
from ledger.identity import EntrantId
from ledger.recorded import StoredEvent
from ledger.storage.writer import Conflict
from ledger.store import Ledger
from projections.battles.columns import battles_of
from projections.ratings.bradley_terry.leaderboard import leaderboard
from projections.ratings.standings import standings, win_rates
from projections.ratings.tournament import by_dimension as by_strength
from projections.reliability.calibration import Calibration, Case
from projections.results.columns import Column
from projections.tournament.remaining import open_queries
from projections.tournament.settlement import accounts_of, by_dimension, settle
from projections.tournament.state import Tournament
from projections.verdicts.queries import JudgeQuery, PairQuery
from tests.support.builders.battles import Battle, in_columns
from tests.support.builders.commands import JUDGE, echo, open_tournament
from tests.support.builders.events import NOON, STREAM, entrant, key, opened, prompt
from tests.support.scripted import ScriptedGenerator, ScriptedJudge

SCREENS: Final = Path(__file__).parents[2] / "golden" / "screens"
PROMPTS: Final = tuple(prompt(name).prompt_id for name in ("p1", "p2", "p3"))
ELO: Final = EloParameters(permutations=5, k_sweep=(8.0, 32.0), bootstraps=20)
BT: Final = BradleyTerryParameters()
ONCE: Final = 0
ENDINGS: Final[Mapping[Format, str]] = MappingProxyType(
    {
        Format.TABLE: "txt",
        Format.JSON: "json",
        Format.JSONL: "jsonl",
        Format.CSV: "csv",
        Format.MD: "md",
    }
)


@cache
def screens() -> dict[str, str]:
    """Return every screen by the name of its file."""
    formats = {f"formats.{end}": rendered(SAMPLE, each) for each, end in ENDINGS.items()}
    return formats | {f"{name}.txt": rendered(table) for name, table in tables().items()}


def rendered(table: Table, output_format: Format = Format.TABLE) -> str:
    """Return a table as it is printed where there is room for all of it."""
    return printed(partial(print_table, table, output_format), width=200)


def printed(draw: Callable[[Console], None], **how: Any) -> str:  # noqa: ANN401  # as rich's
    """Return what is drawn on a console, by default of no environment."""
    file = io.StringIO()
    draw(Console(file=file, **{"_environ": {}, **how}))
    return file.getvalue()


SAMPLE: Final = Table(
    schema="tourney/sample@1",
    title="One of [b]everything[/b]",
    columns=(
        Column("Entrant", key="entrant"),
        Column("Elo & more", 1, key="rating"),
        Column("Matches", key="n_matches"),
        Column("Response", key="text"),
    ),
    rows=tuple(
        {"entrant": entrant_id, "rating": rating, "n_matches": n_matches, "text": text}
        for entrant_id, rating, n_matches, text in (
            ("base", 1400 + 1 / 3, 12, "a | b & 5 % of $_#"),
            ("=1+1", -0.05, 0, "[/INST] [red]now[/red] :pill:"),
            ("none", None, None, None),
            ("two\nlines", 1e6, 1, "\x1b[31m{~^\\} *µ* \u202e \x9b2J"),
        )
    ),
    notes=("A note with [markup] and \x07.",),
    facts={"judge": "reference"},
)


def tables() -> dict[str, Table]:
    """Return each table of one small tournament in which everything happened."""
    with Ledger.in_memory(now=lambda: NOON + timedelta(minutes=5)) as ledger:
        recorder = Recorder(ledger, STREAM)
        recorder.record(open_tournament(opened(prompts=BANK, entrants=ROSTER)))
        before = recorder.state
        generate_missing(
            recorder, lambda: ScriptedGenerator(_answer), PROMPTS, on_progress=no_progress
        )
        answered = recorder.state
        task = JudgeTask(JUDGE, PROMPTS, ONCE)
        judge_open(recorder, task, lambda *_: ScriptedJudge(_judge), on_progress=no_progress)
        rows = tuple(ledger.rows())
    return {
        "plan_generate": missing_responses_table(count_missing_responses(before, PROMPTS)),
        "plan_generate_done": missing_responses_table(count_missing_responses(answered, PROMPTS)),
        "plan_judge": missing_verdicts_table(_missing_verdicts(answered)),
        "plan_judge_too_early": missing_verdicts_table(_missing_verdicts(before)),
        **_readings(recorder.state),
        **_audits(rows),
    }


BANK: Final = (prompt("p1"), prompt("p2"), prompt("p3", gold=None))
ROSTER: Final = (entrant("base"), entrant("tuned"), entrant("broken"))


SURE: Final = Calibration(
    EntrantId("full_poe"),
    None,
    tuple(Case(*each) for each in ((0.95, 1.0), (0.9, 0.0), (0.35, 0.0), (0.1, 0.0))),
    n_left_out=2,
)


STRENGTHS: Final = leaderboard(
    "utility",
    in_columns(
        [
            *(Battle("tuned", "base", score, n) for n, score in enumerate((1, 1, 0.5, 1, 0, 1, 1))),
            *(Battle("base", "small", score, n) for n, score in enumerate((1, 0, 1, 0.5, 1, 1))),
            *(Battle("perfect", "tuned", 1, n) for n in range(2)),
            *(Battle(*pair, 1, 9) for pair in (("here", "there"), ("there", "here"))),
        ]
    ),
    BT,
    ["idle"],
)


def _answer(task: GenerationTask) -> str | GenerationFailure:
    if task.entrant.entrant_id == "broken":
        return GenerationFailure(task.response_key, "not_finite", "logits are NaN at token 1")
    return f"{echo(task)} [/INST] \x1b[31m"


def _judge(query: JudgeQuery) -> str:
    if "p2" in query.user:
        return "Both are fine."
    assert isinstance(query, PairQuery)
    return "VERDICT: A" if query.shown_a.startswith("tuned") else "VERDICT: B"


def _missing_verdicts(state: Tournament) -> tuple[MissingVerdicts, ...]:
    queries = open_queries(state, PROMPTS, JUDGE, ONCE)
    return count_missing_verdicts(state, PROMPTS, JUDGE, queries)


def _readings(state: Tournament) -> dict[str, Table]:
    groups = by_dimension(state, settle(state, PROMPTS, JUDGE))
    roster = [each.entrant_id for each in state.roster]
    columns = {name: battles_of(group) for name, group in groups.items()}
    rated = [standings(name, battles_of(group), roster, ELO) for name, group in groups.items()]
    early = [standings(name, battles_of(group[:0]), roster, ELO) for name, group in groups.items()]
    now = _as_of(9, elo_table(rated, ELO, JUDGE))
    settled = [each for group in groups.values() for each in group]
    accounts = [each.account.sentence() for each in rated]
    return {
        "elo": elo_table(rated, ELO, JUDGE),
        "elo_diff": difference_table(_as_of(4, elo_table(early, ELO, JUDGE)), now),
        "bt": RatedBoards([STRENGTHS], STRENGTHS.ratings.parameters).table(),
        "bt_early": RatedBoards(by_strength(columns, BT, roster), BT, accounts).table(),
        "winrates": winrates_table(win_rates(columns)),
        "matches": matches_table(settled),
        "responses": responses_table(state),
        "progress": progress_table(state, JUDGE, accounts_of(state, PROMPTS, JUDGE)),
        "calibration": calibration_table([SURE]),
    }


def _as_of(position: int, table: Table) -> Table:
    return replace(table, facts={**table.facts, "as_of": position})


def _audits(rows: tuple[StoredEvent, ...]) -> dict[str, Table]:
    head = Head(len(rows), key("head"))
    fault = Fault(7, "its content is not what was recorded")
    name = "headline_20260427_120000"
    difference = Difference(name, "elo_results.json", "differs from byte 40 on")
    verdict = next(row for row in rows if row.type == "VerdictReceived")
    return {
        "log": log_table(rows),
        "merge": conflicts_table(MergeCounts(5, 27, 0, ())),
        "merge_conflicts": conflicts_table(MergeCounts(4, 26, 1, (Conflict(verdict, 19),))),
        "verify": faults_table(Verification(head, 1, 0, ())),
        "verify_merged": faults_table(Verification(head, 1, 2, ())),
        "verify_tampered": faults_table(Verification(head, 2, 0, (fault,))),
        "replay": differences_table(Replayed((name,), ())),
        "replay_tampered": differences_table(Replayed((name,), (difference,))),
    }


if __name__ == "__main__":
    for file_name, text in screens().items():
        (SCREENS / file_name).write_text(text, encoding="utf-8", newline="")
