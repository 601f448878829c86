"""Use case: generate missing responses, and record each batch as soon as it is done.

An entrant that answers nothing but empty texts is stopped; the others go on.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from commands import ports
from commands.decisions.commands import RecordResponse
from commands.decisions.recorder import Recorder, rehearse
from commands.entrants.chats import conversation_messages
from commands.errors import NothingReadable
from ledger.events.registration import Entrant
from ledger.events.responses import ResponseFailureReason
from ledger.identity import Digest, EntrantId, PromptId
from projections.tournament.matches import PlannedResponse
from projections.tournament.remaining import missing_responses, responses_to_come
from projections.tournament.state import Tournament

_EMPTY_IN_A_ROW: Final = 16  # responses of an entrant, before no more are generated
_Result: TypeAlias = ports.GeneratedText | ports.GenerationFailure


class GenerationSummary(NamedTuple):
    """How many responses were missing before, and what became of them."""

    n_missing: int
    n_generated: int
    n_failed: int

    def plus(self, other: "GenerationSummary") -> "GenerationSummary":
        """Return what was generated in both."""
        return GenerationSummary(*map(sum, zip(self, other, strict=True)))


@dataclass(frozen=True)
class WantedResponses:
    """Which missing responses a command generates."""

    prompts: Collection[PromptId]
    retry: Collection[ResponseFailureReason] = ()  # those that failed for such a reason, too
    entrants: Collection[EntrantId] | None = None  # None: those of all

    def names(self, state: Tournament) -> AbstractSet[EntrantId]:
        """Return the entrants."""
        roster = frozenset(entrant.entrant_id for entrant in state.roster)
        return roster if self.entrants is None else roster.intersection(self.entrants)

    def to_come(self, state: Tournament) -> tuple[PlannedResponse, ...]:
        """Return what is missing, later answers to conversations included."""
        return responses_to_come(state, self.prompts, self.retry, entrants=self.entrants)


def generate_missing(
    recorder: Recorder,
    make_generator: Callable[[], ports.Generator],
    prompts: Collection[PromptId],
    *,
    on_progress: ports.OnProgress,
    limit: int | None = None,
    retry: Collection[ResponseFailureReason] = (),
    halt: Callable[[EntrantId], None] | None = None,
    entrants: Collection[EntrantId] | None = None,
) -> GenerationSummary:
    """Generate every response that the ledger lacks; a kill loses at most the current batch.

    The generator is made only if a response is missing.

    Args:
        recorder: The tournament.
        make_generator: Makes the generator.
        prompts: Whose responses are generated.
        on_progress: Called with the number of results so far.
        limit: How many responses to generate at most.
        retry: One that failed for such a reason is missing; if it fails for the same reason again,
            nothing new is recorded of it.
        halt: Lets an endpoint entrant be sent nothing more; what is under way is still recorded.
        entrants: Whose responses are generated; None: those of all.

    Raises:
        NothingReadable: An entrant gave one empty text after the other, and more of it are missing;
            those of the others are recorded.
    """
    n_missing = len(responses_to_come(recorder.state, prompts, retry, entrants=entrants))
    n_most = n_missing if limit is None else min(limit, n_missing)
    asked: dict[Digest, PlannedResponse] = {}
    n_done = n_failed = 0
    empty = _EmptyTexts(halt)
    generator = None
    while cells := [
        cell
        for cell in missing_responses(recorder.state, prompts, retry, entrants)
        if cell.response_key not in asked and cell.entrant.entrant_id not in empty.stopped
    ][: n_most - len(asked)]:  # again, as an answer may let the next question be asked
        if generator is None:
            generator = make_generator()
            on_progress("responses", 0, n_most)
        asked |= {cell.response_key: cell for cell in cells}
        n_left = Counter(cell.entrant.entrant_id for cell in cells)
        for batch in _results(generator, [*map(task_of, cells)], empty.cut_off):
            recorder.record(*(RecordResponse(asked[each.response_key], each) for each in batch))
            n_done += len(batch)
            n_failed += sum(isinstance(result, ports.GenerationFailure) for result in batch)
            on_progress("responses", n_done, n_most)
            for result in batch:
                empty.look_at(asked[result.response_key].entrant, result, n_left)
    if empty.stopped:
        raise NothingReadable("; ".join(empty.stopped.values()))
    return GenerationSummary(n_missing, n_done - n_failed, n_failed)


class _EmptyTexts:
    """Stops entrants that give nothing but empty texts while more of them is missing."""

    def __init__(self, halt: Callable[[EntrantId], None] | None) -> None:
        self._halt = halt
        self._n_in_a_row: Counter[EntrantId] = Counter()
        self.stopped: dict[EntrantId, str] = {}  # with the reason
        self.cut_off: set[EntrantId] = set()  # those whose generator must begin again without them

    def look_at(self, entrant: Entrant, result: _Result, n_left: Counter[EntrantId]) -> None:
        """Count a result; stop its entrant if it is one empty text too many."""
        name = entrant.entrant_id
        n_left[name] -= 1
        if isinstance(result, ports.GenerationFailure):
            return
        why = why_stop(entrant, result.text, result.finish_reason, self._n_in_a_row)
        if why is None or not n_left[name] or name in self.stopped:
            return
        self.stopped[name] = why
        if self._halt is None or entrant.loader != "endpoint":
            self.cut_off.add(name)
        else:
            self._halt(name)


def task_of(cell: PlannedResponse) -> ports.GenerationTask:
    """Return the task of a planned response."""
    entrant = cell.entrant
    messages = conversation_messages(entrant.chosen, cell.asked) if cell.asked else ()
    return ports.GenerationTask(
        cell.response_key,
        entrant,
        cell.text,
        cell.seed,
        options_of(entrant),
        messages,
        cell.prompt.prompt_id,
    )


def _results(
    generator: ports.Generator,
    tasks: Sequence[ports.GenerationTask],
    cut_off: AbstractSet[EntrantId],
) -> Iterator[tuple[_Result, ...]]:
    """Yield the results of tasks; begin again without an entrant that is cut off meanwhile."""
    left = {task.response_key: task for task in tasks}
    while left:
        n_before = len(cut_off)
        for batch in generator.generate([*left.values()]):
            yield batch
            for result in batch:
                left.pop(result.response_key, None)
            if len(cut_off) > n_before:
                break
        else:
            return
        left = {key: each for key, each in left.items() if each.entrant.entrant_id not in cut_off}


def why_stop(
    entrant: Entrant, text: str, finish_reason: str | None, n_empty: Counter[EntrantId]
) -> str | None:
    """Count an entrant's empty texts in a row; return why to stop if they are too many."""
    if entrant.loader == "recorded":  # an empty answer of a file is an answer
        return None
    name = entrant.entrant_id
    n_empty[name] = 0 if text.strip() else n_empty[name] + 1
    if n_empty[name] < _EMPTY_IN_A_ROW:
        return None
    return (
        f"{n_empty[name]} responses in a row of entrant {name!r} are empty, so nothing more is"
        f" generated of it; {ended_by(finish_reason)}"
    )


def ended_by(finish_reason: str | None) -> str:
    """Say why an empty text ended, and what to do."""
    if finish_reason == "length":
        return "the last ended at its length limit: raise max_new_tokens"
    ended = "for no reason given" if finish_reason is None else f"by {finish_reason!r}"
    return f"the last ended {ended}: check its server and how it is prompted"


def with_recorded_answers(
    state: Tournament, prompts: Collection[PromptId], generator: ports.Generator
) -> Tournament:
    """Return the tournament as it is once the answers that files have are on record."""
    while missing := {
        cell.response_key: cell
        for cell in missing_responses(state, prompts, ())
        if cell.entrant.loader == "recorded"
    }:  # again, as an answer may let the next question be asked
        results = generator.generate([*map(task_of, missing.values())])
        answers = [
            RecordResponse(missing[each.response_key], each) for batch in results for each in batch
        ]
        state = rehearse(state, *answers)
    return state


def options_of(entrant: Entrant) -> ports.GenerationOptions:
    """Return how an entrant wants to be prompted and sampled in a tournament."""
    chosen = entrant.chosen
    return ports.GenerationOptions(
        is_chat=chosen.template == "chat",
        top_p=1.0 if chosen.top_p is None else chosen.top_p,
        top_k=chosen.top_k,
        min_p=chosen.min_p or 0.0,
        repetition_penalty=chosen.repetition_penalty or 1.0,
        stop=chosen.stop,
    )


class GeneratorByLoader:
    """Generates for entrants of all loaders; makes only the generators that the tasks need."""

    def __init__(
        self,
        local: Callable[[], ports.Generator],
        endpoint: Callable[[], ports.Generator],
        recorded: Callable[[], ports.Generator],
    ) -> None:
        """Take the makers of the generators: of local weights, endpoints and recorded answers."""
        self._local, self._endpoint, self._recorded = local, endpoint, recorded

    def generate(self, tasks: Sequence[ports.GenerationTask]) -> Iterator[tuple[_Result, ...]]:
        """Yield each finished batch's results: recorded answers, then endpoints, which fail fast.

        Raises:
            MissingExtra: A loader's packages are not installed; nothing was generated.
        """
        remote = [task for task in tasks if task.entrant.loader == "endpoint"]
        recorded = [task for task in tasks if task.entrant.loader == "recorded"]
        local = [task for task in tasks if task.entrant.loader not in {"endpoint", "recorded"}]
        parts = ((self._recorded, recorded), (self._endpoint, remote), (self._local, local))
        generators = [(make(), part) for make, part in parts if part]
        # each is started first: what can be checked is, before any has answered
        for answers in [generator.generate(part) for generator, part in generators]:
            yield from answers
