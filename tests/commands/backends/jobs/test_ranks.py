"""What the first of several processes does for all: in one process by a store, and in two."""

import json
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import torch.distributed as dist
from torch.distributed import distributed_c10d

from commands.backends.jobs import ranks
from commands.backends.jobs.ranks import Call, on_first_rank
from commands.errors import ReplicaFailed
from ledger.auditing.audit import audit
from ledger.store import Ledger
from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).parents[4]
LAUNCH = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2")


class Processes:
    """Processes that share a store, played one after the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Join two."""
        self._store, self._patch = dist.HashStore(), monkeypatch  # type: ignore[attr-defined]  # in torch's stub only
        monkeypatch.setattr(dist, "is_initialized", lambda: True)
        monkeypatch.setattr(dist, "get_world_size", lambda: 2)
        monkeypatch.setattr(distributed_c10d, "_get_default_store", lambda: self._store)

    def call(
        self, rank: int, work: Callable[[], object], name: str = "run", where: str = ""
    ) -> object:
        """Call as the process of a rank."""
        self._patch.setattr(dist, "get_rank", lambda: rank)
        return on_first_rank(Call("job", name, where), work)


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Processes]:
    """Give two processes; each counts its own calls, so a test clears them in between."""
    ranks._n_calls.clear()
    yield Processes(monkeypatch)
    ranks._n_calls.clear()


def never() -> object:
    """Fail: this is the first process's work."""
    raise AssertionError


def test_all_get_what_the_first_found(processes: Processes) -> None:
    """Call by call, though the first may be ahead."""
    for n in range(3):
        assert processes.call(0, partial(dict, score=n)) == {"score": n}
    assert processes.call(0, lambda: "other", name="done") == "other"
    ranks._n_calls.clear()

    assert [processes.call(1, never) for _ in range(3)] == [{"score": n} for n in range(3)]
    assert processes.call(1, never, name="done") == "other"


def test_what_the_first_called_alone_shifts_no_later_call(processes: Processes) -> None:
    """A baseline, or a word about progress, made every later result of the others a stale one."""
    processes.call(0, lambda: "baseline", "evaluate", "step 0")
    processes.call(0, lambda: False, "done", "step 1")
    for step in (1, 2):
        processes.call(0, partial(str, step), "evaluate", f"step {step}")
        processes.call(0, lambda: True, "done", f"step {step}")
    ranks._n_calls.clear()

    for step in (1, 2):
        assert processes.call(1, never, "evaluate", f"step {step}") == f"{step}"
        assert processes.call(1, never, "done", f"step {step}") is True


def test_who_waits_for_a_call_that_does_not_come_says_so(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would wait without a word, and nobody could tell for what."""
    monkeypatch.setattr(ranks, "_PATIENCE", 1)
    processes.call(0, lambda: 6, "evaluate('sum')", "step 1")
    ranks._n_calls.clear()
    found: list[object] = []
    ask = partial(processes.call, 1, never, "evaluate('mean')", "step 1")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        waiting = threading.Thread(target=lambda: found.append(ask()))
        waiting.start()
        while not caught and waiting.is_alive():
            pass
        ranks._n_calls["job"] = 1  # as the first process has counted
        processes.call(0, lambda: 7, "evaluate('mean')", "step 1")
        waiting.join()

    assert found == [7]
    assert str(caught[0].message) == (
        "process 1 waits for process 0 to call evaluate('mean') (step 1);"
        " it called evaluate('sum') (step 1) instead;"
        " make each call in all processes in the same order, or only in the first one"
    )


def test_a_failure_of_the_first_is_told_to_all(processes: Processes) -> None:
    """They would wait for ever, or train on without it."""
    with pytest.raises(ZeroDivisionError):
        processes.call(0, lambda: 1 / 0)
    ranks._n_calls.clear()

    with pytest.raises(ReplicaFailed, match="process 0 failed: ZeroDivisionError: division"):
        processes.call(1, never)


def launch(weights: Path, folder: Path, *, n_processes: int = 2) -> "subprocess.Popen[bytes]":
    """Start a training that evaluates."""
    python = LAUNCH if n_processes > 1 else LAUNCH[:1]
    words = [*python, "-m", "tests.support.weights.training", str(weights), str(folder)]
    return subprocess.Popen(words, cwd=ROOT, start_new_session=True)


def train(weights: Path, folder: Path, *, n_processes: int = 2) -> list[list[list[object]]]:
    """Train to the end; return what each process got."""
    assert launch(weights, folder, n_processes=n_processes).wait(PATIENCE_S) == 0
    with Ledger.read_only(folder / "results/general/default/ddp/evaluations.db") as ledger:
        assert audit(ledger) == ()
    return [json.loads((folder / f"{n}.json").read_text()) for n in range(n_processes)]


@pytest.mark.nightly
def test_two_processes_train_and_both_get_what_one_wrote(weights: Path, tmp_path: Path) -> None:
    """Both evaluate after the same steps; one ledger holds every sample once."""
    for n in range(20):
        folder = tmp_path / f"{n}"
        folder.mkdir()
        first, second = train(weights, folder)

        assert first == second
        assert [each[:3] for each in first] == [[2, False, True], [4, False, True]]


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(3))
def test_killed_processes_resume(weights: Path, tmp_path: Path, seed: int) -> None:
    """Wherever a kill comes, the next training ends, with the same scores."""
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    undisturbed.mkdir()
    killed.mkdir()
    expected = train(weights, undisturbed)
    ledger = killed / "results/general/default/ddp/evaluations.db"

    training = launch(weights, killed)
    while training.poll() is None and not (ledger.exists() and ledger.stat().st_size > seed * 4096):
        pass
    os.killpg(training.pid, signal.SIGKILL)
    training.wait()

    [first, second] = train(weights, killed)
    assert first == second
    assert [each[3] for each in first] == [each[3] for each in expected[0]]
