"""Two actors of Ray leave what one process would leave, whoever is killed on the way."""

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import cycle, islice
from pathlib import Path

import msgspec
import pytest

from commands.backends.cluster.pool import ChunkQueue, RayPool, Seat
from commands.backends.cluster.session import Place
from commands.backends.cluster.shares import Backends, WorkChunk
from commands.backends.huggingface.worker import load_key
from commands.errors import ReplicaFailed, WeightsError
from commands.ports import GeneratedText, GenerationTask
from ledger.events.registration import Entrant
from ledger.store import Ledger
from tests.support.builders.events import entrant, hydra, key
from tests.support.faults.death import Death, before
from tests.support.patience import PATIENCE_S
from tests.support.scripted import ScriptedGenerator, ScriptedReader
from tests.support.weights.mortal import (
    OF_ACTORS,
    OF_DRIVERS,
    PLACES,
    ROSTER,
    answer,
    backends,
    cluster,
    contents,
    do_all,
    driver,
    sound,
)


@pytest.fixture(scope="module")
def variables() -> Iterator[Mapping[str, str]]:
    """Give the address of a Ray that all drivers use, this process too."""
    with cluster() as address:
        yield address


def expected(folder: Path) -> Counter[bytes]:
    """Return what one process leaves that nobody disturbs."""
    do_all(folder / "undisturbed.db", *backends())
    return contents(folder / "undisturbed.db")


def dig(folder: Path, *deaths: Death) -> Path:
    """Write each death into a file of its own."""
    folder.mkdir()
    for n, death in enumerate(deaths):
        (folder / f"{n}").write_bytes(msgspec.json.encode(death))
    return folder


def test_killed_actors_and_drivers_leave_what_one_process_does(
    tmp_path: Path, variables: Mapping[str, str]
) -> None:
    """Each response, sample and evaluation once; what was recorded is not done again."""
    path, graves = tmp_path / "killed.db", dig(tmp_path / "graves", OF_ACTORS[0], OF_ACTORS[3])

    killed = driver(path, graves, variables, before(Ledger.append, call=6))
    n_recorded = contents(path).total()
    done = driver(path, graves, variables, None)

    assert (killed.exitcode, done.exitcode) == (-signal.SIGKILL, 0)
    assert n_recorded > 0
    assert not list(graves.iterdir())  # each actor's death came
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


def breaking() -> Backends:
    """Return what cannot answer prompts 2 and 4."""

    def broken(task: GenerationTask) -> str:
        if task.prompt_text == "2":
            raise WeightsError(Path("weights"), "torn", "mend it")
        if task.prompt_text == "4":
            raise LookupError("a bug")
        return answer(task)

    return ScriptedGenerator(broken), ScriptedReader(lambda _: 0.0)


def test_heads_that_do_not_fit_are_told_before_any_actor_starts() -> None:
    """Each would load the same files, on another machine, only to fail there."""

    def refuse(entrants: Iterable[Entrant]) -> None:
        raise WeightsError(Path("heads"), ", ".join(each.entrant_id for each in entrants), "mend")

    pool = RayPool(breaking, refuse, PLACES, batch_tokens=8192, tell=print)
    headed = GenerationTask(key("headed"), entrant("headed", hydra=hydra()), "?", 0)

    with pytest.raises(WeightsError, match="heads: headed; mend"):
        list(pool.generate([*TASKS, headed]))

    assert [seat.load for seat in pool._seats] == [None, None]


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


def dying() -> Backends:
    """Return what takes its process with it."""

    def die(_: GenerationTask) -> str:
        signal.raise_signal(signal.SIGKILL)
        raise AssertionError

    return ScriptedGenerator(die), ScriptedReader(lambda _: 0.0)


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

    assert all(seat.pending is None for seat in pool._seats)


@pytest.mark.nightly
@pytest.mark.usefixtures("variables")
def test_an_actor_stays_for_the_next_call_and_changes_its_load() -> None:
    """Starting takes seconds; an actor gives up one load before the next."""
    pool = RayPool(backends, sound, PLACES[:1], batch_tokens=8192, tell=print)
    [seat] = pool._seats
    actors = []

    for who in (ROSTER[0], ROSTER[1], ROSTER[2]):
        [[done]] = pool.generate([GenerationTask(key("one"), who, "one", 0)])
        assert isinstance(done, GeneratedText)
        assert done.text == f"{who.entrant_id} on one by 0"
        actors.append(seat._actor)
    pool.close()

    assert actors[0] is actors[1] is actors[2]


BASE, OTHER = load_key(ROSTER[0]), load_key(ROSTER[2])


def queue(*, base: int = 0, other: int = 0) -> ChunkQueue:
    """Return so many chunks of each of two loads."""
    roster = [ROSTER[0]] * base + [ROSTER[2]] * other
    return ChunkQueue(
        WorkChunk("generate", [GenerationTask(key(f"{n}"), who, "why", 0)])
        for n, who in enumerate(roster)
    )


def load_taken(waiting: ChunkQueue, load: object, *others: object) -> object:
    """Return the load of the chunk that an actor with a load takes beside others."""
    chunk = waiting.take(load, others)
    return chunk and chunk.load


def test_an_actor_keeps_its_load_and_then_joins_where_most_is_left_for_each() -> None:
    """Loading takes minutes; and no load should wait for the end of another."""
    assert load_taken(queue(base=1, other=9), BASE) == BASE
    assert load_taken(queue(base=3, other=2), None) == BASE
    assert load_taken(queue(base=3, other=2), None, BASE) == OTHER
    assert load_taken(queue(base=9, other=2), None, BASE, OTHER) == BASE
    assert load_taken(queue(other=1), BASE) == OTHER
    assert load_taken(queue(), BASE) is None


def test_no_more_actors_start_than_there_are_chunks() -> None:
    """Eight cards would load 70 GB each for the one answer that is left."""
    starting, empty = (Seat(Place(1), backends) for _ in range(2))
    starting.pending = object()

    empty.fill(queue(base=1), [starting, empty])

    assert empty.pending is None


def test_a_chunk_that_is_put_back_is_next() -> None:
    """The longest are first, and a lack of memory should show at once."""
    waiting = queue(base=3)
    first = waiting.take(BASE)
    assert first is not None

    waiting.put_back(first)

    assert len(waiting) == 3
    assert waiting.take(BASE) is first
