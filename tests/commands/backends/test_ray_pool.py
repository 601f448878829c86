"""Two actors of Ray leave what one process would leave, whoever is killed on the way."""

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import cycle, islice, pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.backends.loads import load_key
from commands.backends.ray_pool import RayPool, ShareActor, WorkChunk, chunks, next_chunk
from commands.errors import ReplicaFailed, WeightsError
from commands.ports import GeneratedText, GenerationTask
from ledger.events.registration import Entrant
from tests.support.builders.events import entrant, hydra, key
from tests.support.faults.death import Death
from tests.support.patience import PATIENCE_S
from tests.support.weights.mortal import (
    OF_ACTORS,
    OF_DRIVERS,
    PLACES,
    ROSTER,
    ScriptedModels,
    answer,
    backends,
    cluster,
    contents,
    do_all,
    driver,
    mortal,
    sound,
)


@pytest.fixture(scope="module")
def variables() -> Iterator[Mapping[str, str]]:
    """Give the address of a Ray that all drivers use, this process too."""
    with cluster() as address:
        yield address


def expected(folder: Path) -> Counter[bytes]:
    """Return what one process leaves that nobody disturbs."""
    do_all(folder / "undisturbed.db", backends())
    return contents(folder / "undisturbed.db")


def dig(folder: Path, *deaths: Death) -> Path:
    """Write each death into a file of its own."""
    folder.mkdir()
    for n, death in enumerate(deaths):
        (folder / f"{n}").write_bytes(msgspec.json.encode(death))
    return folder


@pytest.mark.usefixtures("variables")
def test_killed_actors_leave_what_one_process_does(tmp_path: Path) -> None:
    """Each response, sample and evaluation once; what was recorded is not done again."""
    path, graves = tmp_path / "killed.db", dig(tmp_path / "graves", OF_ACTORS[1])
    pool = RayPool(partial(mortal, graves), sound, PLACES, batch_tokens=20, tell=print)

    do_all(path, pool)

    pool.close()
    assert not list(graves.iterdir())  # the actor's death came
    assert contents(path) == expected(tmp_path)


@pytest.mark.nightly
def test_fifty_kills_change_nothing(tmp_path: Path, variables: Mapping[str, str]) -> None:
    """Of actors and drivers, at every named point."""
    n_rounds, same = 13, expected(tmp_path)
    of_actors, of_drivers = cycle(OF_ACTORS), cycle(OF_DRIVERS)
    killed = Counter[str]()

    for n in range(n_rounds):
        path = tmp_path / f"{n}.db"
        graves = dig(tmp_path / f"graves of {n}", *islice(of_actors, 3))
        for death in (*islice(of_drivers, 2), None):
            code = driver(path, graves, variables, death).exitcode
            assert code in {0, -signal.SIGKILL}
            killed["drivers"] += code != 0
        killed["actors"] += 3 - len(list(graves.iterdir()))
        assert contents(path) == same

    print(dict(killed))  # noqa: T201  # the report of a long test
    assert killed.total() >= 50


TASKS = [GenerationTask(key(str(n)), ROSTER[0], f"{n}", 0) for n in range(5)]


def breaking() -> ScriptedModels:
    """Return what cannot answer prompts 2 and 4."""

    def broken(task: GenerationTask) -> str:
        if task.prompt_text == "2":
            raise WeightsError(Path("weights"), "torn", "mend it")
        if task.prompt_text == "4":
            raise LookupError("a bug")
        return answer(task)

    return ScriptedModels(broken)


def test_heads_that_do_not_fit_are_told_before_any_actor_starts() -> None:
    """Each would load the same files, on another machine, only to fail there."""

    def refuse(entrants: Iterable[Entrant]) -> None:
        raise WeightsError(Path("heads"), ", ".join(each.entrant_id for each in entrants), "mend")

    pool = RayPool(breaking, refuse, PLACES, batch_tokens=8192, tell=print)
    headed = GenerationTask(key("headed"), entrant("headed", hydra=hydra()), "?", 0)

    with pytest.raises(WeightsError, match="heads: headed; mend"):
        list(pool.generate([*TASKS, headed]))

    assert [seat.load for seat in pool.seats] == [None, None]


@pytest.mark.nightly
def test_a_ray_of_ones_own_that_ends_ends_the_command() -> None:
    """No actor starts in it any more: waiting for one would take for ever."""
    words = [sys.executable, "-m", "tests.support.weights.ended_ray"]

    ended = subprocess.run(
        words,
        check=False,
        cwd=Path(__file__).parents[4],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )

    assert ended.returncode == 1
    assert "the Ray that this command started ended: its process `raylet` is gone" in ended.stderr


def dying() -> ScriptedModels:
    """Return what takes its process with it."""

    def die(_: GenerationTask) -> str:
        signal.raise_signal(signal.SIGKILL)
        raise AssertionError

    return ScriptedModels(die)


@pytest.mark.nightly
@pytest.mark.usefixtures("variables")
def test_a_failure_in_an_actor_is_told_and_a_bug_keeps_its_name() -> None:
    """Torn weights stop the command, and what was answered is kept; a bug needs its traceback."""
    pool = RayPool(breaking, sound, PLACES[:1], batch_tokens=8192, tell=print)
    made: list[object] = []

    with pytest.raises(ReplicaFailed, match="weights: torn; mend it"):
        made.extend(pool.generate(TASKS[:4]))
    with pytest.raises(LookupError, match="a bug"):
        list(pool.generate(TASKS[4:]))
    pool.close()

    assert len(made) == 2


@pytest.mark.nightly
@pytest.mark.usefixtures("variables")
def test_work_that_kills_its_actors_is_given_up() -> None:
    """Memory that is too small for one chunk would end actors for ever."""
    pool = RayPool(dying, sound, PLACES[:1], batch_tokens=8192, tell=print)

    with pytest.raises(ReplicaFailed, match="3 processes died at the same 2 responses"):
        list(pool.generate(TASKS[:4]))

    assert all(seat.pending is None for seat in pool.seats)


@pytest.mark.nightly
@pytest.mark.usefixtures("variables")
def test_an_actor_stays_for_the_next_call_and_changes_its_load() -> None:
    """Starting takes seconds; an actor gives up one load before the next."""
    pool = RayPool(backends, sound, PLACES[:1], batch_tokens=8192, tell=print)
    [seat] = pool.seats
    actors = []

    for who in (ROSTER[0], ROSTER[1], ROSTER[2]):
        [[done]] = pool.generate([GenerationTask(key("one"), who, "one", 0)])
        assert isinstance(done, GeneratedText)
        assert done.text == f"{who.entrant_id} on one by 0"
        actors.append(seat.actor)
    pool.close()

    assert actors[0] is actors[1] is actors[2]


BASE, OTHER = load_key(ROSTER[0]), load_key(ROSTER[2])


def waiting(*, base: int = 0, other: int = 0) -> list[WorkChunk]:
    """Return so many chunks of each of two loads."""
    return [WorkChunk([], load) for load in [BASE] * base + [OTHER] * other]


def test_an_actor_keeps_its_load_and_then_joins_where_most_is_left_for_each() -> None:
    """Loading takes minutes; and no load should wait for the end of another."""
    assert next_chunk(waiting(base=1, other=9), BASE, []).load == BASE
    assert next_chunk(waiting(base=3, other=2), None, []).load == BASE
    assert next_chunk(waiting(base=3, other=2), None, [BASE]).load == OTHER
    assert next_chunk(waiting(base=9, other=2), None, [BASE, OTHER]).load == BASE
    assert next_chunk(waiting(other=1), BASE, []).load == OTHER


def test_no_more_actors_start_than_there_are_chunks() -> None:
    """Eight cards would load 70 GB each for the one answer that is left."""
    pool = RayPool(backends, sound, PLACES, batch_tokens=8192, tell=print)
    pool.seats[0].pending = object()

    pool.fill("generate", waiting(base=1))

    assert pool.seats[1].pending is None


LOADS = [entrant(name, dtype=dtype) for name in "ab" for dtype in ("float32", "bfloat16")]
DRAWN = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 400)), max_size=40)


def tasks_of(drawn: list[tuple[int, int]]) -> list[GenerationTask]:
    """Return a task of its own for each entrant and length drawn."""
    return [
        GenerationTask(key(str(n)), LOADS[who], length * "x", 0)
        for n, (who, length) in enumerate(drawn)
    ]


@given(DRAWN, st.integers(1, 4000))
def test_every_task_is_in_one_chunk_of_its_load(drawn: list[tuple[int, int]], budget: int) -> None:
    """A chunk that needs two loads would load twice wherever it is done."""
    tasks = tasks_of(drawn)

    cut = list(chunks(tasks, budget))

    assert Counter(each.response_key for chunk in cut for each in chunk.work) == Counter(
        each.response_key for each in tasks
    )
    assert all({load_key(each.entrant) for each in chunk.work} == {chunk.load} for chunk in cut)
    changes = sum(first.load != second.load for first, second in pairwise(cut))
    assert changes == max(0, len({chunk.load for chunk in cut}) - 1)  # one load after the other


def test_a_failure_keeps_what_was_done_before_it() -> None:
    """It may have taken an hour."""

    def answer(task: GenerationTask) -> str:
        if task.prompt_text == "torn":
            raise WeightsError(Path("weights"), "torn", "mend it")
        return "yes"

    owed = [GenerationTask(key(said), LOADS[0], said, 0) for said in ("whole", "torn", "whole 2")]
    batches, failure = ShareActor(partial(ScriptedModels, answer)).share("generate", owed)

    [[done]] = batches
    assert isinstance(done, GeneratedText)
    assert (done.response_key, failure) == (key("whole"), "weights: torn; mend it")
