"""Judge in waves: after each the verdicts are looked at, and decided pairs are asked no more.

Without looks the whole bank is one wave, and nothing is looked at.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import chain

from commands.decisions.commands import TakeLook
from commands.decisions.recorder import Recorder
from commands.errors import counted, joined_names
from commands.judging.judge import JudgeTask, JudgingSummary
from commands.ports import Tell
from ledger.events.judging import DimensionLook
from projections.tournament.matches import pairings
from projections.tournament.remaining import n_waiting_pairs
from projections.tournament.state import Tournament
from projections.tournament.waves import (
    looked_at,
    looks_taken,
    n_looks_of,
    prompts_so_far,
    waves_to_come,
)


def in_waves(
    recorder: Recorder,
    task: JudgeTask,
    judge_wave: Callable[[JudgeTask], JudgingSummary],
    tell: Tell,
) -> JudgingSummary:
    """Judge as many waves as can be judged now, and look at the verdicts after each.

    Args:
        recorder: The tournament.
        task: What is judged in all waves; its limit holds for all of them together.
        judge_wave: Judges one.
        tell: Reports what the looks decide.
    """
    done = JudgingSummary(0, 0, 0, 0)
    while True:
        wave = _wave_of(recorder.state, task, done.n_asked)
        done = done.plus(judge_wave(wave))
        if not _is_looked_at(recorder.state, task):
            return done
        if n_waiting_pairs(recorder.state, wave.prompts, wave.judge):
            return done  # for responses: the command says so, or generates them
        if n_unanswered := _n_unanswered(recorder.state, wave):
            queries = counted(n_unanswered, "query has", "queries have")
            tell(f"no look is taken yet: {queries} no verdict")
            return done
        recorder.record(TakeLook(len(recorder.state.looks) + 1))
        tell(sentence_of_last_look(recorder.state))


def may_stop(state: Tournament, task: JudgeTask) -> bool:
    """Say whether a task may end before all of it is asked: by a look, or as a gate knows."""
    return task.only is not None or _is_looked_at(state, task)


def _wave_of(state: Tournament, task: JudgeTask, n_asked: int) -> JudgeTask:
    limit = None if task.limit is None else task.limit - n_asked
    if task.only is not None:
        return replace(task, limit=limit)
    return replace(task, prompts=prompts_so_far(state, task.prompts), limit=limit)


def _is_looked_at(state: Tournament, task: JudgeTask) -> bool:
    """Say whether a look follows: not at other judges or a part of the bank, nor at the end.

    The end is where no pair is left to ask, in the open wave or a later one.
    """
    is_whole = frozenset(task.prompts).issuperset(prompt.prompt_id for prompt in state.bank)
    if n_looks_of(state) is None or task.only or not is_whole or task.judge != looked_at(state):
        return False
    return bool(pairings(state, [*chain.from_iterable(waves_to_come(state))]))


def _n_unanswered(state: Tournament, wave: JudgeTask) -> int:
    """Count a wave's queries that are open or in flight."""
    in_flight = state.in_flight.intersection(wave.keys_in(state)) if state.in_flight else ()
    return len(wave.open_in(state)) + len(in_flight)


def sentence_of_last_look(state: Tournament) -> str:
    """Say what the newest look decided, of all dimensions."""
    look, number = state.looks[-1], len(looks_taken(state))
    decisions = [
        f"{seen.rubric.label}: {_decided(seen)}, {len(seen.futile)} futile"
        for seen in look.dimensions
    ]
    n_looks = max(number, look.n_looks)  # one more where prompts were added after the last
    return f"look {number} of {n_looks}: {'; '.join(decisions) or 'no verdict yet'}"


def _decided(look: DimensionLook) -> str:
    pairs = [f"{pair.a.label} above {pair.b.label}" for pair in look.decided]
    return f"{counted(len(pairs), 'pair')} decided{f' ({joined_names(pairs)})' if pairs else ''}"
