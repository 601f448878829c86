"""Work that several processes share, cut into chunks; failures in a process are values.

A chunk needs one load of weights and fits a token budget, so that what is lost with a process is
small.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

from commands.backends.huggingface.worker import load_key
from commands.ports import Continuation, GenerationTask, Generator, LikelihoodModel
from ledger.errors import TourneyError

_CHARS_PER_TOKEN: Final = 3  # a guess, as the tokenizer is with the weights; English has more

Work = TypeVar("Work", GenerationTask, Continuation)
Port: TypeAlias = Literal["generate", "log_likelihoods"]
Backends: TypeAlias = tuple[Generator, LikelihoodModel]


@dataclass(eq=False)
class WorkChunk:
    """Work for one call of a port, and how many processes died at it."""

    port: Port
    work: Sequence[Any]
    n_deaths: int = 0

    @property
    def load(self) -> Hashable:
        """What a process must have loaded to do it."""
        return load_key(self.work[0].entrant)


class ShareResult(NamedTuple):
    """The results of a chunk; those before a failure count."""

    batches: tuple[tuple[Any, ...], ...]
    failure: str | None = None


class ShareActor:
    """Does chunks in a process of Ray's, and keeps the weights that it loaded last."""

    def __init__(self, make: Callable[[], Backends]) -> None:
        """Take what makes the backends, which the first chunk does: it can tell of failures."""
        self._make = cache(make)

    def is_up(self) -> bool:
        """Answer once the process runs."""
        return True

    def share(self, port: Port, work: Sequence[Any]) -> ShareResult:
        """Do a chunk; failures are values, as Ray cannot send every error."""
        batches: list[tuple[Any, ...]] = []
        try:
            generator, reader = self._make()
            batches.extend(
                generator.generate(work) if port == "generate" else reader.log_likelihoods(work)
            )
        except TourneyError as error:
            return ShareResult(tuple(batches), str(error))
        return ShareResult(tuple(batches))


def chunks(work: Sequence[Work], budget: int) -> Iterator[list[Work]]:
    """Cut work into chunks of one load each, load by load, the longest pieces first.

    Args:
        work: Of any entrants. Texts of one context stay in one chunk, which reads it once.
        budget: The tokens of a chunk, padding included; a single piece may exceed it.
    """
    loads: dict[Hashable, dict[Hashable, list[Work]]] = {}
    for each in work:
        loads.setdefault(load_key(each.entrant), {}).setdefault(_context(each), []).append(each)
    for pieces in loads.values():
        yield from _cut(sorted(pieces.values(), key=_widest, reverse=True), budget)


def _context(each: GenerationTask | Continuation) -> Hashable:
    return each.response_key if isinstance(each, GenerationTask) else each.context or each.key


def _cut(pieces: Sequence[list[Work]], budget: int) -> Iterator[list[Work]]:
    chunk: list[Work] = []
    widest = 0
    for piece in pieces:
        if chunk and (len(chunk) + len(piece)) * widest > budget:
            yield chunk
            chunk = []
        widest = widest if chunk else _widest(piece)
        chunk.extend(piece)
    if chunk:
        yield chunk


def _widest(piece: Sequence[Work]) -> int:
    return max(map(n_tokens, piece))


def n_tokens(each: GenerationTask | Continuation) -> int:
    """Estimate the tokens that a piece of work takes in a batch."""
    if isinstance(each, GenerationTask):
        return len(each.prompt_text) // _CHARS_PER_TOKEN + each.entrant.max_new_tokens
    return (len(each.context) + len(each.text)) // _CHARS_PER_TOKEN + 1
