"""Tasks of lm-evaluation-harness as evaluations: it makes the requests, and scores the answers.

A task's requests are observed and recorded as other evaluations' samples. Once all are there,
lm-evaluation-harness computes its metrics from them, which the plan's completion records.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, ClassVar, Final, Self

from pydantic import BaseModel, ConfigDict, NonNegativeInt

from commands.backends.harness import (
    Decoding,
    HarnessTasks,
    RequestKind,
    RequestName,
    Response,
    TaskItem,
    load_tasks,
)
from commands.entrants.chats import ChatForm, after_system
from commands.evaluating.evaluation import Completion, Evaluation, Observed, SampleResult
from commands.evaluating.likelihoods import PerplexityComparisonEvaluation, PerplexityEvaluation
from commands.evaluating.rollout import AnswersEvaluation
from commands.evaluating.samples import Inference, Sample
from commands.evaluating.user_code import Scores, reduce_scores
from commands.settings.sections import EvaluationOptions, EvaluationSection, Reduce
from ledger.events.conversations import Messages
from ledger.events.evaluations import (
    AnswerObserved,
    ChoicesObserved,
    DocumentObserved,
    EvaluationKind,
    Observation,
    SampleScore,
    TaskReference,
)
from ledger.identity import Digest, Json


class TaskParameters(BaseModel):
    """Parameters of a task in tournament.toml; the first and the last are its own words."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    num_fewshot: NonNegativeInt | None = None  # None: as the task says
    bos: bool = False  # as lm-evaluation-harness: only if the tokenizer adds it by itself
    confirm_run_unsafe_code: bool = False  # let a task run the code that a model writes


def read_tasks(section: EvaluationSection, folder: Path) -> Iterator[tuple[str, Evaluation]]:
    """Yield the evaluations of the tasks that a table uses, and after them those of their groups.

    A task has one; one whose requests are of several kinds has one for each, and one of them all.
    Before each stands what follows the name of its table, if anything does.

    Raises:
        UnknownTask: There is none of this name.
        ConfigurationError: There is no such file, or a task cannot be run here.
    """
    chosen, options = TaskParameters.model_validate(section.parameters), section.options
    loaded = load_tasks(
        section.uses, folder, chosen.num_fewshot, runs_code=chosen.confirm_run_unsafe_code
    )
    parts: dict[str, list[TaskPart]] = {}
    for task, reference in loaded.tasks.items():
        suffix = "" if task == loaded.whole else task
        items = loaded.items(task, options.chat or "none", options.length)
        made = parts[task] = [
            _KINDS[kind](loaded, reference, decoding, bos=chosen.bos)
            for kind, decoding in dict.fromkeys((each.first.kind, each.decoding) for each in items)
        ]
        if len(made) == 1:
            yield suffix, made[0]
            continue
        for n, part in enumerate(made, start=1):
            part.is_scored = False
            name = f"{part.request_kind}.{n}"
            yield f"{suffix}.{name}" if suffix else name, part
        yield suffix, TaskWhole(loaded, reference, made)
    for group, (reference, names) in loaded.groups.items():
        members = [part for name in names for part in parts[name]]
        yield "" if group == loaded.whole else group, TaskWhole(loaded, reference, members)


class TaskEvaluation(Evaluation):
    """Base of evaluations whose metrics lm-evaluation-harness computes."""

    task: TaskReference
    items: Sequence[TaskItem] = ()
    is_scored = True  # False: another evaluation scores it

    def __init__(self, loaded: HarnessTasks, task: TaskReference) -> None:
        """Take what was loaded, and the task or group."""
        self.loaded, self.task = loaded, task

    @property
    def name(self) -> str:
        """The task's or the group's."""
        return self.task.name

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

    def completion(self, observed: Mapping[Evaluation, Observed]) -> Completion:
        """Return the scores and results of its members' observations; none if another scores."""
        if not self.is_scored:
            return Completion()
        answers: dict[RequestName, Sequence[Response]] = {}
        for member, seen in observed.items():
            if isinstance(member, TaskPart):
                answers.update(member.responses(seen))
        tasks = [*dict.fromkeys(member.name for member in self.member_evaluations)]
        results, of_answers = self.loaded.scores(self.name, tasks, answers)
        scores = []
        for sample, observation in observed.get(self, {}).items():
            kept = of_answers.get(self.items[sample.index].first.document)
            if kept and isinstance(observation, AnswerObserved):
                cleaned, score = kept
                scores.append(
                    SampleScore(
                        item=sample.item, sample=sample.number, cleaned=cleaned, score=score
                    )
                )
        return Completion(scores, results)


class TaskPart(TaskEvaluation):
    """The requests of a task that are alike: all of most tasks."""

    request_kind: ClassVar[RequestKind]

    def __init__(
        self, loaded: HarnessTasks, task: TaskReference, decoding: Decoding | None, *, bos: bool
    ) -> None:
        """Take the task, and how its answers are generated."""
        super().__init__(loaded, task)
        self.decoding, self.bos, self.between = decoding, bos, loaded.between(task.name)
        self._asked_by: tuple[ChatForm, int | None] | None = None

    @property
    def member_evaluations(self) -> Sequence[Evaluation]:
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
        alike = self.request_kind, self.decoding
        items = self.loaded.items(self.name, form, options.length)
        asked.items = [each for each in items if (each.first.kind, each.decoding) == alike]
        return asked

    @property
    def n_available(self) -> int:
        """Count the items of all documents, of which fewer may be asked."""
        n_documents = self.loaded.n_documents(self.name)
        n_asked = len({each.first.document for each in self.items})
        return max(len(self.items), len(self.items) * n_documents // max(1, n_asked))

    def label(self, index: int) -> str:
        """Return the document's number in the task, and the first request's place."""
        first = self.items[index].first
        return f"{self.name}[{first.document}]{f'.{first.place}' if first.place else ''}"

    def drawn(self, items: Sequence[Digest], options: EvaluationOptions) -> tuple[Digest, ...]:  # noqa: ARG002  # as others
        """Return all items: lm-evaluation-harness takes the first documents."""
        return tuple(items)

    def chat_messages(self, index: int, system: str | None = None) -> Messages:
        """Return what a chat template is to show for an item."""
        messages = self.items[index].messages
        return after_system(system, messages, self.between) if messages else ()

    def responses(self, observed: Observed) -> Iterator[tuple[RequestName, Sequence[Response]]]:
        """Yield each request that was answered, with the response to each try."""
        tries: dict[int, list[Observation]] = defaultdict(list)
        for sample, observation in observed.items():
            tries[sample.index].append(observation)
        for index, observations in tries.items():
            first = self.items[index].first
            for n, responses in enumerate(zip(*map(_responses_of, observations), strict=True)):
                yield first._replace(place=first.place + n), responses

    def score_of(
        self, seen: Mapping[Sample, Observation], samples: Sequence[Sample], reduce: Reduce
    ) -> float | Scores:
        """Return the task's first metric, or its value for each sample's document."""
        results = self.completion({self: seen}).results
        if results is None or not results.metrics:
            return reduce_scores([float("nan")] * len(samples), reduce)
        first = results.metrics[0]
        if reduce == "mean":
            return float("nan") if first.value is None else first.value
        values = results.of_documents(first)
        documents = (self.items[sample.index].first.document for sample in samples)
        return reduce_scores([values.get(document, float("nan")) for document in documents], reduce)


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
        n_samples = max(options.samples_per_prompt, self.loaded.n_repeats(self.name))
        drawn = {"temperature": self.decoding.temperature, "top_p": self.decoding.top_p}
        how = drawn if self.decoding.temperature else {}
        return options.model_copy(update={"samples_per_prompt": n_samples, **how})

    def settings(self, inference: Inference, options: EvaluationOptions) -> Mapping[str, Json]:
        """Return the settings without a name: tasks share answers."""
        return {**super().settings(inference, options), "scored_by": "lm-eval"}


class TaskWhole(TaskEvaluation):
    """The metrics of a group, or of a task whose requests are of several kinds; asks nothing."""

    kind: ClassVar[EvaluationKind] = "comparison"

    def __init__(
        self, loaded: HarnessTasks, task: TaskReference, parts: Sequence[TaskPart]
    ) -> None:
        """Take the parts whose answers are scored together."""
        super().__init__(loaded, task)
        self._parts = tuple(parts)

    @property
    def member_evaluations(self) -> Sequence[Evaluation]:
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
    ) -> Iterator[tuple[SampleResult, ...]]:
        """Yield nothing."""
        del inference, samples, options
        yield from ()


_KINDS: Final[Mapping[RequestKind, type[TaskChoices | TaskDocuments | TaskAnswers]]] = {
    "loglikelihood": TaskChoices,
    "loglikelihood_rolling": TaskDocuments,
    "generate_until": TaskAnswers,
}
