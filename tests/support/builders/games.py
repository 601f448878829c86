"""Whole tournaments played by scripts, for tests of what is done with a ledger afterwards."""

from collections.abc import Callable, Sequence
from pathlib import Path

from commands.decisions.recorder import Recorder
from commands.entrants.generate import generate_missing
from commands.judging.judge import JudgeTask, judge_open
from commands.ports import Answer, GenerationFailure, GenerationTask, no_progress
from commands.runs.run import PublishedRun, publish
from ledger.events.registry import Event
from ledger.identity import PromptId
from ledger.store import Ledger
from projections.verdicts.queries import JudgeQuery
from tests.support.builders.commands import (
    JUDGE,
    P1,
    P2,
    echo,
    open_tournament,
    prefer_tuned,
    terms,
)
from tests.support.builders.events import NOON, STREAM, opened, prompt
from tests.support.faults.hostile import hash_again, unguarded
from tests.support.scripted import ScriptedGenerator, ScriptedJudge

CHANGE = "UPDATE event SET {} WHERE position = {}".format
DELETE = "DELETE FROM event WHERE position = {}".format

OPENING = opened(prompts=[prompt("p1"), prompt("p2")])


def generated(
    recorder: Recorder,
    events: Sequence[Event] = OPENING,
    answer: Callable[[GenerationTask], str | GenerationFailure] = echo,
) -> Recorder:
    """Open a tournament, and let every entrant answer every prompt."""
    recorder.record(open_tournament(events))
    prompts = [each.prompt_id for each in recorder.state.bank]
    generate_missing(recorder, lambda: ScriptedGenerator(answer), prompts, on_progress=no_progress)
    return recorder


def judged(
    recorder: Recorder,
    prompts: Sequence[PromptId] = (P1, P2),
    reply: Callable[[JudgeQuery], Answer | str | None] = prefer_tuned,
    *,
    retries: int = 0,
    limit: int | None = None,
) -> Recorder:
    """Judge what is open."""
    task = JudgeTask(JUDGE, prompts, retries=retries, limit=limit)
    judge_open(recorder, task, lambda *_: ScriptedJudge(reply), on_progress=no_progress)
    return recorder


def published(recorder: Recorder, runs: Path) -> PublishedRun:
    """Publish at noon."""
    return publish(recorder, terms(), runs=runs, now=NOON)


def play(path: Path) -> PublishedRun:
    """Play a tournament of two entrants and two prompts in a ledger's file, and publish it."""
    with Ledger.open(path) as ledger:
        recorder = judged(generated(Recorder(ledger, STREAM)))
        return published(recorder, path.parent / "runs")


def position_of(path: Path, type_: str) -> int:
    """Return where the first event of a type stands."""
    with Ledger.read_only(path) as ledger:
        return next(row.position for row in ledger.rows() if row.type == type_)


def forge_with_hashes(path: Path, *statements: str) -> None:
    """Change a ledger's file, and make every hash anew so that its chain is whole again."""
    with unguarded(path) as connection:
        for statement in statements:
            connection.execute(statement)
        hash_again(connection)
