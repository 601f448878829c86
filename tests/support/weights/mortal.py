"""A tournament whose work two actors of Ray do, while actors and the driver are killed.

Actors take the place of weights by a function of the task, so that a process starts in a second.
A death is a file that one actor takes, so each comes once, however many processes there are.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

import msgspec
import pytest
import ray

from commands.backends.loads import LocalBackend
from commands.backends.ray_pool import Place, RayPool, ShareActor, connected
from commands.decisions.recorder import EvaluationRecorder, Recorder
from commands.entrants.generate import generate_missing
from commands.evaluating.evaluate import evaluate_all, plan_evaluation
from commands.evaluating.samples import Inference
from commands.ports import Continuation, GenerationTask, no_progress
from commands.settings.sections import EvaluationOptions
from ledger.auditing.audit import audit
from ledger.events.registration import Entrant
from ledger.identity import canonical_json
from ledger.store import Ledger
from tests.support.builders.commands import open_tournament
from tests.support.builders.evaluating import Capitals, Letters
from tests.support.builders.events import STREAM, entrant, opened, prompt
from tests.support.faults.death import Death, before, die
from tests.support.scripted import ScriptedGenerator, ScriptedReader

ROSTER: Final = (
    entrant("base"),
    entrant("warm", weights_digest=entrant("base").weights_digest, temperature=0.5),
    entrant("other"),
)  # of two loads
PROMPTS: Final = tuple(prompt(f"p{n}", text=n * "word ") for n in range(1, 9))
EVALUATIONS: Final = (
    Capitals(*((f"Capital of country {n}?", f"{n}") for n in range(12))),
    Letters(*(n * "letter " for n in range(1, 13))),
)
PLACES: Final = (Place(0), Place(0))  # of a machine with any number of CPUs


def answer(task: GenerationTask) -> str:
    """Answer by who is asked what, and by which seed."""
    return f"{task.entrant.entrant_id} on {task.prompt_text} by {task.seed}"


def weigh(passage: Continuation) -> float:
    """Weigh by the length of a text."""
    return -1.0 * len(passage.text)


class ScriptedModels:
    """What stands for weights: functions of the task."""

    def __init__(self, say: Callable[[GenerationTask], str], batch: int = 1) -> None:
        """Answer and read so many at a time."""
        self.generate = ScriptedGenerator(say, batch=batch).generate
        self.log_likelihoods = ScriptedReader(weigh, batch=batch).log_likelihoods


def backends() -> ScriptedModels:
    """Return what stands for weights."""
    return ScriptedModels(answer, batch=2)


def sound(entrants: Iterable[Entrant]) -> None:
    """Find no fault: nothing is loaded."""


def mortal(graves: Path) -> ScriptedModels:
    """Return the same, in a process that dies as the first file says, which it takes."""
    for grave in sorted(graves.iterdir()):
        death = msgspec.json.decode(grave.read_bytes(), type=Death)
        try:
            grave.unlink()
        except FileNotFoundError:  # another process took it
            continue
        die(death)
        break
    return backends()


OF_ACTORS: Final = (
    before(answer),
    before(answer, call=4),
    before(weigh),
    before(weigh, call=3),
    before(ShareActor.share),
    before(ShareActor.share, call=2),
    before(ScriptedGenerator._result, call=2),
)
OF_DRIVERS: Final = (
    before(Ledger.append, call=2),
    before(Ledger.append, call=5),
    before(Ledger.append, call=9),
    before(RayPool.fill, call=9),
    before(RayPool._result, call=3),
    before(RayPool._result, call=6),
    before(Recorder.catch_up, call=4),
    before(EvaluationRecorder._catch_up, call=3),
)


def do_all(path: Path, model: LocalBackend) -> None:
    """Generate and evaluate all that a ledger lacks."""
    with Ledger.open(path) as ledger:
        recorder = Recorder(ledger, STREAM)
        recorder.record(open_tournament(opened(entrants=ROSTER, prompts=PROMPTS)))
        prompts = [each.prompt_id for each in PROMPTS]
        generate_missing(recorder, lambda: model, prompts, on_progress=no_progress)
        for evaluation in EVALUATIONS:
            evaluation.chunk_size = 6
        planned = [
            plan_evaluation(
                evaluation, Inference(who, lambda: model, lambda: model), EvaluationOptions()
            )
            for who in ROSTER
            for evaluation in EVALUATIONS
        ]
        evaluate_all(EvaluationRecorder(ledger, STREAM), planned, on_progress=no_progress)


def drive(path: Path, graves: Path, variables: Mapping[str, str], death: Death | None) -> None:
    """Do all on two actors of a cluster; this process is the driver, and may be killed."""
    os.environ.update(variables)
    with connected():
        pool = RayPool(partial(mortal, graves), sound, PLACES, batch_tokens=20, tell=print)
        if death is not None:
            die(death)
        do_all(path, pool)
        pool.close()


def driver(
    path: Path, graves: Path, variables: Mapping[str, str], death: Death | None
) -> BaseProcess:
    """Return a finished driver, forked of a process that has done the imports."""
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    process = context.Process(target=drive, args=(path, graves, variables, death))
    process.start()
    process.join()
    return process


def contents(path: Path) -> Counter[bytes]:
    """Count what a sound ledger's events say, in whatever order they came."""
    with Ledger.read_only(path) as ledger:
        assert audit(ledger) == ()
        return Counter(
            canonical_json(msgspec.to_builtins(recorded.event)) for recorded in ledger.read()
        )


@contextmanager
def cluster() -> Iterator[Mapping[str, str]]:
    """Start a Ray of this process, and yield the variables by which others reach it.

    It lacks three of Ray's processes, which watch and scale a cluster, and take seconds to start.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in ("start_api_server", "start_log_monitor", "start_monitor"):
            patch.setattr(f"ray._private.node.Node.{name}", lambda *_, **__: None)
        with connected():
            address = ray.get_runtime_context().gcs_address
            token = os.environ["RAY_AUTH_TOKEN"]
            yield {"RAY_ADDRESS": address, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token}
