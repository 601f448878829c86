"""Tasks of lm-evaluation-harness as evaluations: it makes the requests, and scores the answers.

A task's requests are observed and recorded as other evaluations' samples. Once all are there,
lm-evaluation-harness computes its metrics from them, which the plan's completion records.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, NamedTuple, Protocol, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, NonNegativeInt

from commands.entrants.chats import ChatForm, after_system, recorded_text
from commands.errors import ConfigurationError
from commands.evaluating.evaluation import Evaluation, SampleResult
from commands.evaluating.likelihoods import PerplexityComparisonEvaluation, PerplexityEvaluation
from commands.evaluating.rollout import AnswersEvaluation
from commands.evaluating.samples import Inference, Sample
from commands.evaluating.values import Scores, reduce_scores
from commands.settings.sections import EvaluationOptions, Reduce
from ledger.events.conversations import Messages
from ledger.events.evaluations import (
    AnswerObserved,
    ChoicesItem,
    ChoicesObserved,
    DocumentObserved,
    EvaluationItem,
    EvaluationKind,
    Observation,
    PromptItem,
    SampleScore,
    TaskReference,
    TaskResults,
    TextItem,
)
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


class _TaskItem(NamedTuple):
    """An item of a part: requests of one document behind one context."""

    document: int
    place: int  # of its first request among the document's requests of the kind
    messages: Messages
    asked: EvaluationItem


Observed: TypeAlias = Mapping[Sample, Observation]
"""A plan's samples that have an observation."""


class TaskEvaluation(Evaluation):
    """Base of evaluations whose metrics lm-evaluation-harness computes."""

    task: TaskReference
    items: Sequence[_TaskItem] = ()
    is_scored = True  # False: another evaluation scores it

    def __init__(self, loaded: LoadedTasks, task: TaskReference) -> None:
        """Take what was loaded, and the task or group."""
        self.loaded, self.task = loaded, task

    @property
    def name(self) -> str:
        """The task's or the group's."""
        return self.task.name

    @property
    def members(self) -> Sequence["TaskEvaluation"]:
        """The evaluations whose answers it scores: itself."""
        return (self,)

    @property
    def scorer(self) -> Digest:
        """Digest of the version of lm-evaluation-harness, and of the task."""
        return self.task.content_digest

    def __len__(self) -> int:
        """Count the items."""
        return len(self.items)

    def get(self, index: int) -> Any:  # noqa: ANN401  # of each kind its own
        """Return an item; a chat is recorded in place of its context."""
        return self.items[index].asked

    item = get

    def outcome(
        self, observed: Mapping["TaskPart", Observed]
    ) -> tuple[tuple[SampleScore, ...], TaskResults] | None:
        """Return the scores and results of its members' observations, to be recorded at the end.

        None: another evaluation scores them.
        """
        if not self.is_scored:
            return None
        answers: dict[str, dict[int, dict[RequestKind, dict[int, Sequence[Response]]]]] = {}
        for member, seen in observed.items():
            of_task = answers.setdefault(member.name, {})
            for document, place, tries in member.responses(seen):
                of_kinds = of_task.setdefault(document, {})
                of_kinds.setdefault(member.request_kind, {})[place] = tries
        scores = self.loaded.scores(self.name, answers)
        own = next((seen for member, seen in observed.items() if member is self), {})
        return (*self._answer_scores(own, scores.answers),), scores.results

    def _answer_scores(
        self, own: Observed, scores: Mapping[int, AnswerScore]
    ) -> Iterator[SampleScore]:
        """Yield the scores of its own samples that were generated answers."""
        for sample, observation in own.items():
            score = scores.get(self.items[sample.index].document)
            if score and isinstance(observation, AnswerObserved):
                yield SampleScore(
                    item=sample.item,
                    sample=sample.number,
                    cleaned=score.cleaned,
                    score=score.score,
                )


_Part: TypeAlias = tuple[RequestKind, Decoding | None]


class TaskPart(TaskEvaluation):
    """The requests of a task that are alike: all of most tasks."""

    request_kind: ClassVar[RequestKind]

    def __init__(
        self, loaded: LoadedTasks, task: str, decoding: Decoding | None, *, bos: bool
    ) -> None:
        """Take the task's name, and how its answers are generated."""
        self.known = loaded.tasks[task]
        super().__init__(loaded, self.known.reference)
        self.decoding, self.bos, self.between = decoding, bos, self.known.between
        self._asked_by: tuple[ChatForm, int | None] | None = None

    def asked_as(self, options: EvaluationOptions) -> Self:
        """Return the evaluation with its first questions asked as the options say."""
        super().asked_as(options)
        form: ChatForm = options.chat or "none"
        if self._asked_by == (form, options.length):
            return self
        asked = copy(self)
        asked._asked_by, asked._chat_form = (form, options.length), form  # noqa: SLF001  # its own
        documents = self.loaded.documents(self.name, form, options.length)
        asked.items = _items_of(documents)[self.request_kind, self.decoding]
        return asked

    @property
    def n_available(self) -> int:
        """Count the items of all documents, of which fewer may be asked."""
        n_asked = len({each.document for each in self.items})
        return max(len(self.items), len(self.items) * self.known.n_documents // max(1, n_asked))

    def label(self, index: int) -> str:
        """Return the document's number in the task, and the first request's place."""
        asked = self.items[index]
        return f"{self.name}[{asked.document}]{f'.{asked.place}' if asked.place else ''}"

    def drawn(self, items: Sequence[Digest], options: EvaluationOptions) -> tuple[Digest, ...]:  # noqa: ARG002  # as others
        """Return all items: lm-evaluation-harness takes the first documents."""
        return tuple(items)

    def chat_messages(self, index: int, system: str | None = None) -> Messages:
        """Return what a chat template is to show for an item."""
        messages = self.items[index].messages
        return after_system(system, messages, self.between) if messages else ()

    def responses(self, observed: Observed) -> Iterator[tuple[int, int, Sequence[Response]]]:
        """Yield the document, place and tries of each request that was answered."""
        tries: dict[int, list[Observation]] = defaultdict(list)
        for sample, observation in observed.items():
            tries[sample.index].append(observation)
        for index, observations in tries.items():
            asked = self.items[index]
            for n, responses in enumerate(zip(*map(_responses_of, observations), strict=True)):
                yield asked.document, asked.place + n, responses

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
            shown = recorded_text(messages) if messages else context
            for together in [texts] if is_choice else [(text,) for text in texts]:
                asked: EvaluationItem
                match kind:
                    case "loglikelihood":
                        right = correct if is_choice and correct else 0
                        asked = ChoicesItem(context=shown, choices=together, correct=right)
                    case "loglikelihood_rolling":
                        asked = TextItem(text=together[0])
                    case "generate_until":
                        asked = PromptItem(prompt=shown, expected=document.expected)
                items[kind, decoding].append(
                    _TaskItem(document.number, places[kind], messages, asked)
                )
                places[kind] += len(together)
    return items


def _context_of(request: TaskRequest) -> tuple[RequestKind, str, Messages, Decoding | None]:
    return request.kind, request.context, request.messages, request.decoding


class TaskChoices(TaskPart, PerplexityComparisonEvaluation):
    """Texts behind contexts."""

    request_kind: ClassVar[RequestKind] = "loglikelihood"


class TaskDocuments(TaskPart, PerplexityEvaluation):
    """Whole documents."""

    request_kind: ClassVar[RequestKind] = "loglikelihood_rolling"


class TaskAnswers(TaskPart, AnswersEvaluation):
    """Generated answers, which are scored when all are there."""

    request_kind: ClassVar[RequestKind] = "generate_until"
    is_chat = False
    decoding: Decoding

    @property
    def stop(self) -> tuple[str, ...]:  # type: ignore[override]  # a class attribute there
        """The texts that end an answer."""
        return self.decoding.stop

    def max_new_tokens(self, inference: Inference) -> int:  # noqa: ARG002  # the same for all
        """Return the largest length of an answer, in tokens."""
        return self.decoding.max_new_tokens

    def decided(self, options: EvaluationOptions) -> EvaluationOptions:
        """Return how often and how answers are drawn: as the task says, if it draws any."""
        n_samples = max(options.samples_per_prompt, self.known.n_repeats)
        drawn = {"temperature": self.decoding.temperature, "top_p": self.decoding.top_p}
        how = drawn if self.decoding.temperature else {}
        return options.model_copy(update={"samples_per_prompt": n_samples, **how})

    def settings(self, inference: Inference, options: EvaluationOptions) -> Mapping[str, Json]:
        """Return the settings without a name: tasks share answers."""
        return {**super().settings(inference, options), "scored_by": "lm-eval"}

    def reduce(self, observations: Sequence[Observation | None], reduce: Reduce) -> float | Scores:
        """Return NaN: an answer alone has no score."""
        return reduce_scores([float("nan")] * len(observations), reduce)


class TaskWhole(TaskEvaluation):
    """The metrics of a group, or of a task whose requests are of several kinds; asks nothing."""

    kind: ClassVar[EvaluationKind] = "comparison"

    def __init__(self, loaded: LoadedTasks, task: TaskReference, parts: Sequence[TaskPart]) -> None:
        """Take the parts whose answers are scored together."""
        super().__init__(loaded, task)
        self._parts = tuple(parts)

    @property
    def members(self) -> Sequence[TaskEvaluation]:
        """The parts."""
        return self._parts

    def asked_as(self, options: EvaluationOptions) -> Self:  # noqa: ARG002  # its parts are asked
        """Return itself."""
        return self

    def samples(self, options: EvaluationOptions) -> tuple[Sample, ...]:  # noqa: ARG002  # as others
        """Return none."""
        return ()

    def settings(self, inference: Inference, options: EvaluationOptions) -> Mapping[str, Json]:
        """Return those of the parts.

        Raises:
            ConfigurationError: The entrant does not support one of them.
        """
        parts = {
            part.id: dict(part.settings(inference, part.decided(options))) for part in self._parts
        }
        return {"parts": parts}

    def observe(
        self, inference: Inference, samples: Sequence[Sample], options: EvaluationOptions
    ) -> Iterator[tuple[SampleResult, ...]]:  # as others
        """Yield nothing."""
        del inference, samples, options
        yield from ()

    def reduce(self, observations: Sequence[Observation | None], reduce: Reduce) -> float | Scores:  # noqa: ARG002  # as others
        """Return NaN: its parts have the scores."""
        return reduce_scores([], reduce)


def task_evaluations(
    loaded: LoadedTasks, parameters: TaskParameters, options: EvaluationOptions
) -> Iterator[tuple[str, Evaluation]]:
    """Yield the evaluations of loaded tasks, and after them those of their groups.

    A task has one; one whose requests are of several kinds has one for each, and one of them all.
    Before each stands what follows the name of its table, if anything does.
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
            yield suffix, made[0]
            continue
        for n, part in enumerate(made, start=1):
            part.is_scored = False
            name = f"{part.request_kind}.{n}"
            yield f"{suffix}.{name}" if suffix else name, part
        yield suffix, TaskWhole(loaded, known.reference, made)
    for group, (reference, names) in loaded.groups.items():
        members = [part for name in names for part in parts[name]]
        yield "" if group == loaded.whole else group, TaskWhole(loaded, reference, members)


_KINDS: Final[Mapping[RequestKind, type[TaskChoices | TaskDocuments | TaskAnswers]]] = {
    "loglikelihood": TaskChoices,
    "loglikelihood_rolling": TaskDocuments,
    "generate_until": TaskAnswers,
}
