"""Tasks of lm-evaluation-harness as evaluations: it makes the requests, and scores the answers.

A task's requests are observed and recorded as other evaluations' samples. Once all are there,
lm-evaluation-harness computes its metrics from them, which the plan's completion records.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from itertools import groupby
from pathlib import Path
from typing import ClassVar, Final, Literal, NamedTuple, Protocol, Self, TypeAlias

from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, NonNegativeInt

from commands.entrants.chats import ChatForm, after_system
from commands.errors import ConfigurationError
from commands.evaluating.evaluation import Evaluation, SampleResult
from commands.evaluating.likelihoods import PerplexityComparisonEvaluation, PerplexityEvaluation
from commands.evaluating.rollout import RolloutEvaluation
from commands.evaluating.samples import Inference, Sample
from commands.evaluating.values import ComparisonItem, Item, Scores, reduce_scores
from commands.settings.sections import EvaluationOptions, Reduce
from ledger.events.conversations import Messages
from ledger.events.evaluations import (
    AnswerObserved,
    ChoicesObserved,
    DocumentObserved,
    EvaluationKind,
    Observation,
    SampleScore,
    TaskReference,
    TaskResults,
)
from ledger.events.registration import Entrant
from ledger.identity import Digest, Json

RequestKind = Literal["loglikelihood", "loglikelihood_rolling", "generate_until"]
"""What lm-evaluation-harness asks of a model, by the names of its methods."""


class TaskParameters(BaseModel):
    """Parameters of a task in tournament.toml; the first and the last are its own words."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    num_fewshot: NonNegativeInt | None = None  # None: as the task says
    bos: bool = False  # as lm-evaluation-harness: only if the tokenizer adds it by itself
    confirm_run_unsafe_code: bool = False  # let a task run the code that a model writes


class Decoding(NamedTuple):
    """How answers are generated."""

    stop: tuple[str, ...]
    max_new_tokens: int
    temperature: float  # 0: greedy
    top_p: float


class TaskRequest(NamedTuple):
    """One request: the likelihood of a text behind a context, or an answer to it."""

    kind: RequestKind
    context: str  # empty if there are messages
    messages: Messages  # of a chat
    text: str  # empty if an answer is asked for
    decoding: Decoding | None  # None: nothing is generated


class TaskDocument(NamedTuple):
    """A document of a task's data, and what is asked about it."""

    number: int
    requests: tuple[TaskRequest, ...]
    expected: str
    correct: int | None  # index among texts behind one context; None: there is none


Response: TypeAlias = tuple[float, bool] | float | str
"""As a model of lm-evaluation-harness answers: nats and whether greedy, nats, or a text."""

Answers: TypeAlias = Mapping[int, Mapping[RequestKind, Mapping[int, Sequence[Response]]]]
"""By document, kind and place among its requests of the kind: the response of each try."""


class AnswerScore(NamedTuple):
    """What a task's filter keeps of an answer, and its first metric."""

    cleaned: str
    score: float


class TaskScores(NamedTuple):
    """What a task or a group makes of answers."""

    results: TaskResults
    answers: Mapping[int, AnswerScore]  # by document; none of a group


class LoadedTask(NamedTuple):
    """A task, as far as it is known before anything is asked."""

    reference: TaskReference
    between: str  # a system prompt and what its own first turn says
    n_documents: int
    n_repeats: int


class LoadedTasks(Protocol):
    """A task, or those of a group, loaded by lm-evaluation-harness."""

    @property
    def whole(self) -> str:
        """The name of the task or group that was asked for; empty: it is a tag."""

    @property
    def tasks(self) -> Mapping[str, LoadedTask]:
        """Each task, by name."""

    @property
    def groups(self) -> Mapping[str, tuple[TaskReference, Sequence[str]]]:
        """Each group that has metrics of its own, with the names of its tasks."""

    def documents(self, task: str, form: ChatForm, length: int | None) -> Sequence[TaskDocument]:
        """Return the first documents of a task, with what is asked about them."""

    def scores(self, name: str, answers: Mapping[str, Answers]) -> TaskScores:
        """Return what a task or group makes of answers, by task; what has none is left out."""


ReadTasks: TypeAlias = Callable[[str, Path, TaskParameters], LoadedTasks]
"""Loads what `uses` names: a task, group or tag of lm-evaluation-harness, or a YAML file."""


class UnknownTask(ConfigurationError):
    """lm-evaluation-harness has no task, group or tag of a name."""


class TaskEvaluation(Evaluation):
    """Base of evaluations whose metrics lm-evaluation-harness computes."""

    task: TaskReference
    loaded: LoadedTasks
    scored_name: str  # of the task or group that its completion scores; empty: another does

    @property
    def members(self) -> tuple["TaskPart", ...]:
        """The evaluations whose answers it scores."""
        raise NotImplementedError

    @property
    def scorer(self) -> Digest:
        """Digest of the version of lm-evaluation-harness, and of the task."""
        return self.task.content_digest

    def outcome(
        self, observed: Mapping["TaskPart", "Observed"]
    ) -> tuple[tuple[SampleScore, ...], TaskResults] | None:
        """Return the scores and results of its members' observations, to be recorded at the end.

        None: another evaluation scores them.
        """
        if not self.scored_name:
            return None
        answers: dict[str, dict[int, dict[RequestKind, dict[int, Sequence[Response]]]]] = {}
        for member, seen in observed.items():
            of_task = answers.setdefault(member.task_name, {})
            for document, kind, place, tries in member.responses(seen):
                of_task.setdefault(document, {}).setdefault(kind, {})[place] = tries
        scores = self.loaded.scores(self.scored_name, answers)
        return (*self.answer_scores(scores.answers, observed),), scores.results

    def answer_scores(
        self, scores: Mapping[int, AnswerScore], observed: Mapping["TaskPart", "Observed"]
    ) -> Iterator[SampleScore]:
        """Yield the scores of its own samples that were generated answers."""
        del scores, observed
        yield from ()


Observed: TypeAlias = Mapping[Sample, Observation]
"""A plan's samples that have an observation."""


class _TaskItem(NamedTuple):
    """An item of a part: requests of one document behind one context."""

    document: int
    place: int  # of its first request among the document's requests of the kind
    context: str
    messages: Messages
    texts: tuple[str, ...]
    expected: str
    correct: int


_Part: TypeAlias = tuple[RequestKind, Decoding | None]


class TaskPart(TaskEvaluation):
    """The requests of a task that are alike: all of most tasks."""

    request_kind: ClassVar[RequestKind]
    items: Sequence[_TaskItem] = ()

    def __init__(
        self, loaded: LoadedTasks, task: str, decoding: Decoding | None, *, bos: bool
    ) -> None:
        """Take the task's name, and how its answers are generated."""
        self.loaded, self.task_name, self.decoding, self.bos = loaded, task, decoding, bos
        self.scored_name = task
        known = loaded.tasks[task]
        self.task, self.between = known.reference, known.between
        self._asked_by: tuple[ChatForm, int | None] | None = None

    @property
    def name(self) -> str:
        """The task's."""
        return self.task_name

    @property
    def members(self) -> tuple["TaskPart", ...]:
        """Itself."""
        return (self,)

    def asked_as(self, options: EvaluationOptions) -> Self:
        """Return the evaluation with its first questions asked as the options say."""
        super().asked_as(options)
        form: ChatForm = options.chat or "none"
        if self._asked_by == (form, options.length):
            return self
        asked = copy(self)
        asked._asked_by, asked._chat_form = (form, options.length), form  # noqa: SLF001  # its own
        documents = self.loaded.documents(self.task_name, form, options.length)
        asked.items = _items_of(documents)[self.request_kind, self.decoding]
        return asked

    def __len__(self) -> int:
        """Count the items."""
        return len(self.items)

    @property
    def n_available(self) -> int:
        """Count the items of all documents, of which fewer may be asked."""
        n_asked = len({each.document for each in self.items})
        n_documents = self.loaded.tasks[self.task_name].n_documents
        return max(len(self.items), len(self.items) * n_documents // max(1, n_asked))

    def label(self, index: int) -> str:
        """Return the document's number in the task, and the first request's place."""
        asked = self.items[index]
        return f"{self.task_name}[{asked.document}]{f'.{asked.place}' if asked.place else ''}"

    def drawn(self, items: Sequence[Digest], options: EvaluationOptions) -> tuple[Digest, ...]:  # noqa: ARG002  # as others
        """Return all items: lm-evaluation-harness takes the first documents."""
        return tuple(items)

    def samples(self, options: EvaluationOptions) -> tuple[Sample, ...]:
        """Return the samples to observe."""
        return Evaluation.samples(self, options)

    def chat_messages(self, index: int, system: str | None = None) -> Messages:
        """Return what a chat template is to show for an item."""
        messages = self.items[index].messages
        return after_system(system, messages, self.between) if messages else ()

    def responses(
        self, observed: Observed
    ) -> Iterator[tuple[int, RequestKind, int, Sequence[Response]]]:
        """Yield the document, kind, place and tries of each request that was answered."""
        tries: dict[int, list[Observation]] = defaultdict(list)
        for sample, observation in observed.items():
            tries[sample.index].append(observation)
        for index, observations in tries.items():
            asked = self.items[index]
            for n, responses in enumerate(zip(*map(_responses_of, observations), strict=True)):
                yield asked.document, self.request_kind, asked.place + n, responses

    def answer_scores(
        self, scores: Mapping[int, AnswerScore], observed: Mapping["TaskPart", Observed]
    ) -> Iterator[SampleScore]:
        """Yield the scores of generated answers."""
        for sample, observation in observed[self].items():
            score = scores.get(self.items[sample.index].document)
            if score and isinstance(observation, AnswerObserved):
                yield SampleScore(
                    item=sample.item,
                    sample=sample.number,
                    cleaned=score.cleaned,
                    score=score.score,
                )

    def score_of(
        self, seen: Mapping[Sample, Observation], samples: Sequence[Sample], reduce: Reduce
    ) -> float | Scores:
        """Return the task's first metric, or its value for each sample's document."""
        outcome = self.outcome({self: seen})
        if outcome is None or not outcome[1].metrics:
            return reduce_scores([float("nan")] * len(samples), reduce)
        results = outcome[1]
        first = results.metrics[0]
        if reduce == "mean":
            return float("nan") if first.value is None else first.value
        values = results.of_documents(first)
        documents = (self.items[sample.index].document for sample in samples)
        return reduce_scores([values.get(each, float("nan")) for each in documents], reduce)


def _responses_of(observation: Observation) -> Sequence[Response]:
    match observation:
        case ChoicesObserved():
            return [(choice.log_likelihood, choice.is_greedy) for choice in observation.choices]
        case DocumentObserved():
            return [observation.log_likelihood]
        case AnswerObserved():
            return [observation.text]
        case _:
            raise TypeError(observation)


def _items_of(documents: Sequence[TaskDocument]) -> Mapping[_Part, Sequence[_TaskItem]]:
    """Return what is asked of documents, apart by kind and by how answers are generated."""
    items: dict[_Part, list[_TaskItem]] = defaultdict(list)
    for document in documents:
        places: dict[RequestKind, int] = defaultdict(int)
        for (kind, context, messages, decoding), group in groupby(document.requests, _context_of):
            texts = tuple(request.text for request in group)
            correct = document.correct
            is_choice = len(texts) > 1 and correct is not None and correct < len(texts)
            for together in [texts] if is_choice else [(text,) for text in texts]:
                items[kind, decoding].append(
                    _TaskItem(
                        document.number,
                        places[kind],
                        context,
                        messages,
                        together,
                        document.expected,
                        correct if is_choice and correct else 0,
                    )
                )
                places[kind] += len(together)
    return items


def _context_of(request: TaskRequest) -> tuple[RequestKind, str, Messages, Decoding | None]:
    return request.kind, request.context, request.messages, request.decoding


class TaskChoices(TaskPart, PerplexityComparisonEvaluation):
    """Texts behind contexts."""

    request_kind: ClassVar[RequestKind] = "loglikelihood"

    def get(self, index: int) -> tuple[str, Sequence[str], int]:
        """Return a context, the texts behind it, and the index of the correct one."""
        asked = self.items[index]
        return asked.context, asked.texts, asked.correct

    def item(self, index: int) -> ComparisonItem:
        """Return the same; other comparisons need two texts at least."""
        return self.in_chat(ComparisonItem(*self.get(index)), index)  # type: ignore[arg-type]


class TaskDocuments(TaskPart, PerplexityEvaluation):
    """Whole documents."""

    request_kind: ClassVar[RequestKind] = "loglikelihood_rolling"

    def get(self, index: int) -> str:
        """Return a document."""
        return self.items[index].texts[0]


class TaskAnswers(TaskPart, RolloutEvaluation):
    """Generated answers, which are scored when all are there."""

    request_kind: ClassVar[RequestKind] = "generate_until"
    is_chat = False
    decoding: Decoding

    def get(self, index: int) -> tuple[str, str]:
        """Return a prompt and what is expected."""
        asked = self.items[index]
        return asked.context, asked.expected

    def clean(self, y_hat: str) -> str:
        """Return an answer: the task's filters need all."""
        return y_hat

    def score_text(self, expected: str, text: str) -> tuple[str, float | None]:  # noqa: ARG002  # as others
        """Return an answer without a score."""
        return text, None

    def rescore(self, observation: Observation) -> Observation:
        """Return what is recorded: lm-evaluation-harness scores all answers together."""
        return observation

    def score_together(self, observations: Sequence[Observation]) -> Sequence[Observation]:
        """Return what is recorded."""
        return observations

    @property
    def stop(self) -> tuple[str, ...]:  # type: ignore[override]  # a class attribute there
        """The texts that end an answer."""
        return self.decoding.stop

    def max_new_tokens(self, inference: Inference) -> int:  # noqa: ARG002  # the same for all
        """Return the largest length of an answer, in tokens."""
        return self.decoding.max_new_tokens

    def n_samples(self, options: EvaluationOptions) -> int:
        """Return the number of answers per prompt: the task's, if it is larger."""
        return max(options.samples_per_prompt, self.loaded.tasks[self.task_name].n_repeats)

    def configured(self, inference: Inference, options: EvaluationOptions) -> Entrant:
        """Return the entrant with the task's decoding."""
        return super().configured(inference, self._sampled(options))

    def settings(self, inference: Inference, options: EvaluationOptions) -> Mapping[str, Json]:
        """Return the settings without a name: tasks share answers."""
        found = super().settings(inference, self._sampled(options))
        return {**found, "scored_by": "lm-eval"}

    def observe(
        self, inference: Inference, samples: Sequence[Sample], options: EvaluationOptions
    ) -> Iterator[tuple[SampleResult, ...]]:
        """Generate answers."""
        return super().observe(inference, samples, self._sampled(options))

    def _sampled(self, options: EvaluationOptions) -> EvaluationOptions:
        """Return how answers are drawn: as the task says, if it draws any."""
        if not self.decoding.temperature:
            return options
        drawn = {"temperature": self.decoding.temperature, "top_p": self.decoding.top_p}
        return options.model_copy(update=drawn)


class TaskWhole(TaskEvaluation):
    """The metrics of a group, or of a task whose requests are of several kinds; asks nothing."""

    kind: ClassVar[EvaluationKind] = "comparison"

    def __init__(
        self, loaded: LoadedTasks, name: str, task: TaskReference, parts: Sequence[TaskPart]
    ) -> None:
        """Take the parts whose answers are scored together."""
        self.loaded, self.scored_name, self.task = loaded, name, task
        self._parts = tuple(parts)

    @property
    def name(self) -> str:
        """The group's, or the task's."""
        return self.scored_name

    @property
    def members(self) -> tuple[TaskPart, ...]:
        """The parts."""
        return self._parts

    def asked_as(self, options: EvaluationOptions) -> Self:  # noqa: ARG002  # its parts are asked
        """Return itself."""
        return self

    def __len__(self) -> int:
        """Count no items."""
        return 0

    def item(self, index: int) -> Item:
        """Raise: there is none."""
        raise IndexError(index)

    def samples(self, options: EvaluationOptions) -> tuple[Sample, ...]:  # noqa: ARG002  # as others
        """Return none."""
        return ()

    def configured(self, inference: Inference, options: EvaluationOptions) -> Entrant:  # noqa: ARG002  # as others
        """Return the entrant without its decoding."""
        return replace(inference.entrant, temperature=None, max_new_tokens=1)

    def settings(self, inference: Inference, options: EvaluationOptions) -> Mapping[str, Json]:
        """Return those of the parts.

        Raises:
            ConfigurationError: The entrant does not support one of them.
        """
        of_parts = {part.id: dict(part.settings(inference, options)) for part in self._parts}
        return {"parts": of_parts}

    def observe(
        self, inference: Inference, samples: Sequence[Sample], options: EvaluationOptions
    ) -> Iterator[tuple[SampleResult, ...]]:  # as others
        """Yield nothing."""
        del inference, samples, options
        yield from ()

    def reduce(self, observations: Sequence[Observation | None], reduce: Reduce) -> float | Scores:  # noqa: ARG002  # as others
        """Return NaN: its parts have the scores."""
        return reduce_scores([], reduce)


class NamedEvaluation(NamedTuple):
    """An evaluation of a table, and what follows the table's name; empty: nothing."""

    suffix: str
    evaluation: Evaluation


def task_evaluations(
    loaded: LoadedTasks, parameters: TaskParameters, options: EvaluationOptions
) -> Iterator[NamedEvaluation]:
    """Yield the evaluations of loaded tasks, and after them those of their groups.

    A task has one; one whose requests are of several kinds has one for each, and one of them all.
    """
    parts: dict[str, list[TaskPart]] = {}
    for task, known in loaded.tasks.items():
        suffix = "" if task == loaded.whole else task
        documents = loaded.documents(task, options.chat or "none", options.length)
        made = parts[task] = [
            _KINDS[kind](loaded, task, decoding, bos=parameters.bos)
            for kind, decoding in _items_of(documents)
        ]
        if len(made) == 1:
            yield NamedEvaluation(suffix, made[0])
            continue
        for n, part in enumerate(made, start=1):
            part.scored_name = ""
            name = f"{part.request_kind}.{n}"
            yield NamedEvaluation(f"{suffix}.{name}" if suffix else name, part)
        yield NamedEvaluation(suffix, TaskWhole(loaded, task, known.reference, made))
    for group, (reference, names) in loaded.groups.items():
        members = [part for name in names for part in parts[name]]
        suffix = "" if group == loaded.whole else group
        yield NamedEvaluation(suffix, TaskWhole(loaded, group, reference, members))


_KINDS: Final[Mapping[RequestKind, type[TaskChoices | TaskDocuments | TaskAnswers]]] = {
    "loglikelihood": TaskChoices,
    "loglikelihood_rolling": TaskDocuments,
    "generate_until": TaskAnswers,
}
