"""Which actor does which chunk: loads are shared out, and no more actors start than are needed."""

from commands.backends.cluster._seats import ChunkQueue, Seat, WorkChunk
from commands.backends.cluster.session import Place
from commands.backends.huggingface.shares import Assignment, load_key
from commands.ports import GenerationTask
from tests.support.builders.events import entrant, key
from tests.support.weights.mortal import backends

BASE, OTHER = entrant("base"), entrant("other")


def queue(**n_chunks: int) -> ChunkQueue:
    """Return so many chunks of each entrant."""
    return ChunkQueue(
        WorkChunk(Assignment("generate", [GenerationTask(key(f"{n}"), entrant(name), "why", 0)]))
        for name, n_of_it in n_chunks.items()
        for n in range(n_of_it)
    )


def seat(load: object = None, *, starts: bool = False) -> Seat:
    """Return a seat whose actor has a load, or is about to."""
    one = Seat(Place(1), backends)
    one.load = load
    one.pending = object() if starts else None
    return one


def test_an_actor_joins_where_most_is_left_for_each() -> None:
    """So that two loads begin at once, and no load waits for the end of another."""
    base, other = load_key(BASE), load_key(OTHER)

    assert queue(base=3, other=2).load_to_join([]) == base
    assert queue(base=3, other=2).load_to_join([seat(base)]) == other
    assert queue(base=9, other=2).load_to_join([seat(base), seat(other)]) == base


def test_no_more_actors_start_than_there_are_chunks() -> None:
    """Eight cards would load 70 GB each for the one answer that is left."""
    starting = seat(load_key(BASE), starts=True)

    assert queue(base=1).load_to_join([starting]) is None
    assert queue(base=2).load_to_join([starting]) == load_key(BASE)
    assert queue().load_to_join([]) is None


def test_a_chunk_that_is_put_back_is_next() -> None:
    """The longest are first, and a lack of memory should show at once."""
    waiting = queue(base=3)
    first = waiting.take(load_key(BASE))
    assert first is not None

    waiting.put_back(first)

    assert len(waiting) == 3
    assert waiting.take(load_key(BASE)) is first
    assert waiting.take(load_key(OTHER)) is None
