"""Work that several processes share: cut into chunks, done chunk by chunk, failures told as values.

A chunk needs one load of weights and fits a token budget, so that each process loads once, and what
is lost with a process is small. Nothing here needs torch.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from commands.ports import Continuation, GenerationTask, Generator, LikelihoodModel
from ledger.errors import TourneyError
from ledger.events.registration import Entrant

_CHARS_PER_TOKEN = 3  # of English fewer tokens: a guess, as the tokenizer is with the weights
_BATCHES = 4  # in a chunk, of one process: enough to sort by length within it

Work = TypeVar("Work", GenerationTask, Continuation)
Dealt = TypeVar("Dealt")
Backends: TypeAlias = tuple[Generator, LikelihoodModel]


class Assignment(NamedTuple):
    """Work for one call of a port."""

    what: Literal["generate", "log_likelihoods"]
    work: Sequence[Any]


class ShareResult(NamedTuple):
    """The results of a share; those before a failure count."""

    batches: tuple[tuple[Any, ...], ...]
    failure: str | None


def do_share(make: Callable[[], Backends], share: Assignment) -> ShareResult:
    """Do a share of the work, by what `make` returns."""
    batches: list[tuple[Any, ...]] = []
    try:
        generator, reader = make()
        batches.extend(
            generator.generate(share.work)
            if share.what == "generate"
            else reader.log_likelihoods(share.work)
        )
    except TourneyError as error:
        return ShareResult(tuple(batches), str(error))
    return ShareResult(tuple(batches), None)


def load_key(entrant: Entrant) -> Hashable:
    """Return a key that is equal for entrants that load the same files."""
    adapters = tuple(adapter.digest for adapter in entrant.adapters)
    heads = entrant.hydra and (
        entrant.hydra.heads_depth,
        tuple(shard.digest for shard in entrant.hydra.security),
        tuple(shard.digest for shard in entrant.hydra.robustness),
        entrant.hydra.uncertainty and entrant.hydra.uncertainty.digest,
    )
    return entrant.weights_digest, adapters, heads, entrant.dtype


def together(each: GenerationTask | Continuation) -> Hashable:
    """Return a key that is equal for work that one process should do: of one context."""
    if isinstance(each, GenerationTask):
        return each.response_key
    return each.context or each.key


def n_tokens(each: GenerationTask | Continuation) -> int:
    """Estimate the tokens that a piece of work takes in a batch."""
    if isinstance(each, GenerationTask):
        return len(each.prompt_text) // _CHARS_PER_TOKEN + each.entrant.max_new_tokens
    return (len(each.context) + len(each.text)) // _CHARS_PER_TOKEN + 1


def most_tokens(*, on_gpu: bool) -> int:
    """Return the most tokens of a batch where the user names no number.

    More rows are hardly faster on a CPU, and more is lost with a process.
    """
    return 1 << 16 if on_gpu else 1 << 13


def chunk_budget(batch_tokens: int | None, n_processes: int = 1, *, on_gpu: bool) -> int:
    """Return the tokens of a chunk that so many processes do together."""
    return _BATCHES * (batch_tokens or most_tokens(on_gpu=on_gpu)) * n_processes


def chunks(work: Sequence[Work], budget: int) -> Iterator[list[Work]]:
    """Cut work into chunks of one load each, load by load, the longest pieces first.

    Args:
        work: Of any entrants. What belongs `together` stays in one chunk.
        budget: The tokens of a chunk, padding included; a single piece may exceed it.
    """
    loads: dict[Hashable, dict[Hashable, list[Work]]] = {}
    for each in work:
        loads.setdefault(load_key(each.entrant), {}).setdefault(together(each), []).append(each)
    for pieces in loads.values():
        yield from _cut(sorted(pieces.values(), key=_widest, reverse=True), budget)


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


def deal(
    work: Sequence[Dealt], key: Callable[[Dealt], Hashable], n: int
) -> tuple[list[Dealt], ...]:
    """Deal work to n hands in turn; work with the same key goes to the same hand."""
    turns: dict[Hashable, int] = {}
    hands: tuple[list[Dealt], ...] = tuple([] for _ in range(n))
    for each in work:
        hands[turns.setdefault(key(each), len(turns)) % n].append(each)
    return hands
