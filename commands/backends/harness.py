"""Load tasks by lm-evaluation-harness, list what they ask, and score answers as it does.

Its own loop runs over a model that returns what is on record. So few-shot examples, filters,
metrics and groups are its own, to the last digit.
"""

import inspect
import json
import os
import random
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import replace
from functools import cached_property, partial
from importlib.metadata import version
from io import StringIO
from itertools import groupby
from math import isfinite
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from lm_eval.api.metrics import mean
from lm_eval.api.model import LM
from lm_eval.evaluator import evaluate
from lm_eval.models.utils import normalize_gen_kwargs
from lm_eval.tasks import TaskManager

from commands.entrants.chats import ChatForm, recorded_text
from commands.errors import ConfigurationError
from commands.evaluating.registry import UnknownTask
from ledger.events.conversations import Messages
from ledger.events.evaluations import (
    ChoicesItem,
    EvaluationItem,
    PromptItem,
    TaskMetric,
    TaskReference,
    TaskResults,
    TextItem,
)
from ledger.identity import Digest, digest_of

RequestKind = Literal["loglikelihood", "loglikelihood_rolling", "generate_until"]
"""What lm-evaluation-harness asks of a model, by the names of its methods."""

Response: TypeAlias = tuple[float, bool] | float | str
"""As a model of lm-evaluation-harness answers: nats and whether greedy, nats, or a text."""


class RequestName(NamedTuple):
    """A request of a document, by its place among those of its kind."""

    task: str
    document: int
    kind: RequestKind
    place: int


Answers: TypeAlias = Mapping[RequestName, Sequence[Response]]
"""The response to each try at a request."""


class Decoding(NamedTuple):
    """How answers are generated."""

    stop: tuple[str, ...]
    max_new_tokens: int
    temperature: float  # 0: greedy
    top_p: float


class TaskItem(NamedTuple):
    """One request of a document, or several for the likelihoods of choices behind one context."""

    first: RequestName
    decoding: Decoding | None  # None: nothing is generated
    messages: Messages  # of a chat
    asked: EvaluationItem  # a chat is recorded in place of its context


_SEED: Final = 0  # the seeds are those of its `simple_evaluate`
_OTHER_SEED: Final = 1234
_RESAMPLES: Final = 1_000  # for standard errors of metrics that are no means; it takes 100,000
_MAX_NEW_TOKENS: Final = 256  # where a task says nothing, as for its model `hf`
_UNFILTERED: Final = "none"
_GROUP: Final = re.compile(r'^\{?\s*"?group"?\s*:', re.MULTILINE)  # a key of a group's file
_DECODING: Final = frozenset({"until", "max_gen_toks", "do_sample", "temperature", "top_p"})


def load_tasks(
    uses: str, folder: Path, n_examples: int | None, *, runs_code: bool
) -> "HarnessTasks":
    """Load a task, a group or a tag by its name, or a YAML file of one.

    Args:
        uses: The name; or the file, in whose folder relative paths to data start.
        folder: Where the path of the file starts.
        n_examples: How many stand before each question; None: as the task says.
        runs_code: Whether a task may run the code that a model writes.

    Raises:
        UnknownTask: There is none of this name.
        ConfigurationError: There is no such file, or the task cannot be run here.
    """
    if Path(uses).suffix not in {".yaml", ".yml"}:
        with _in_quiet():
            manager = TaskManager()
            if uses not in manager.all_tasks:
                raise UnknownTask([f"lm-evaluation-harness has no task, group or tag {uses!r}"])
            return HarnessTasks(manager.load([uses]), n_examples, runs_code=runs_code)
    file = (folder / uses).resolve()
    if not file.is_file():
        raise ConfigurationError([f"{folder / uses}: there is no such file; correct the path"])
    with _in_quiet(), chdir(file.parent):
        return HarnessTasks(_loaded(file), n_examples, runs_code=runs_code)


def _loaded(file: Path) -> Any:  # noqa: ANN401  # a TaskDict: the package has no types
    """Load a file with the tasks beside it, or with all if that is not enough: they take seconds.

    A group is loaded by its name: by its path it cannot be.
    """
    if not _GROUP.search(file.read_text(encoding="utf-8")):
        return TaskManager(include_defaults=False).load([str(file)])
    manager = TaskManager(include_path=str(file.parent), include_defaults=False)
    found = [each for each in manager.task_index.values() if each.yaml_path == file]
    members = found[0].cfg.get("task") if found else None
    if not isinstance(members, list):
        return TaskManager(include_defaults=False).load([str(file)])
    names = [member.get("task") if isinstance(member, dict) else member for member in members]
    if any(name not in manager.all_tasks for name in names):
        manager = TaskManager(include_path=str(file.parent))
    return manager.load([found[0].name])


@contextmanager
def _in_quiet() -> Iterator[None]:
    """Seed as `simple_evaluate` does, show nothing that it shows, and leave no trace of either."""
    states = random.getstate(), np.random.get_state()  # noqa: NPY002  # its tasks draw from it
    random.seed(_SEED)
    np.random.seed(_OTHER_SEED)  # noqa: NPY002  # as above
    at_once = os.environ.get("DISABLE_MULTIPROC")
    os.environ["DISABLE_MULTIPROC"] = "1"  # it would fork beside the threads of PyTorch
    try:
        with (
            redirect_stdout(StringIO()),
            redirect_stderr(StringIO()),
            warnings.catch_warnings(action="ignore"),
        ):
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002  # as above
        os.environ.pop("DISABLE_MULTIPROC")
        if at_once is not None:
            os.environ["DISABLE_MULTIPROC"] = at_once


class HarnessTasks:
    """A task, or those of a group, loaded by lm-evaluation-harness."""

    def __init__(
        self, loaded: Mapping[str, Any], n_examples: int | None, *, runs_code: bool
    ) -> None:
        """Take what a manager loaded.

        Raises:
            ConfigurationError: A task needs more than texts, or runs what the model writes.
        """
        self._tasks, self._groups = loaded["tasks"], loaded.get("groups", {})
        self._children = {name for names in loaded["group_map"].values() for name in names}
        self._runs_code = runs_code
        self._asked: dict[tuple[str, ChatForm, int | None], Sequence[TaskItem]] = {}
        self._instances: dict[str, dict[int, list[Any]]] = {}  # by task and document
        faults = [fault for name in self._tasks if (fault := self._fault_of(name))]
        if faults:
            raise ConfigurationError(faults)
        for task in self._tasks.values():
            _set_fewshot(task, n_examples)

    def _fault_of(self, name: str) -> str | None:
        task = self._tasks[name]
        if getattr(task, "MULTIMODAL", False):
            return f"task {name!r} shows images or sounds, which entrants here cannot read"
        if getattr(task, "UNSAFE_CODE", False) and not self._runs_code:
            return (
                f"task {name!r} runs code that the model writes on this machine; if you want that,"
                " say parameters = { confirm_run_unsafe_code = true } in its table"
            )
        return None

    @cached_property
    def whole(self) -> str:
        """The name of the task or group that was asked for; empty: it is a tag."""
        roots = [name for name in self._groups or self._tasks if name not in self._children]
        return roots[0] if len(roots) == 1 else ""

    @cached_property
    def tasks(self) -> Mapping[str, TaskReference]:
        """Each task, by name."""
        return {
            name: TaskReference(name=name, version=version("lm_eval"), digest=_digest_of(task))
            for name, task in self._tasks.items()
        }

    @cached_property
    def groups(self) -> Mapping[str, tuple[TaskReference, Sequence[str]]]:
        """Each group that has metrics of its own, with the names of its tasks."""
        found = {}
        for name, group in self._groups.items():
            if group.has_aggregation:
                members = [task.task_name for task in group.get_all_tasks()]
                digests = [self.tasks[member].digest for member in members]
                digest = digest_of([_as_text(group.to_dict()), digests])
                reference = TaskReference(name=name, version=version("lm_eval"), digest=digest)
                found[name] = reference, members
        return found

    def between(self, task: str) -> str:
        """Return what stands between a system prompt and what a task's own first turn says."""
        return str(self._tasks[task].config.fewshot_delimiter)

    def n_documents(self, task: str) -> int:
        """Count the documents of a task."""
        return len(self._tasks[task].eval_docs)

    def n_repeats(self, task: str) -> int:
        """Return how often a task asks each of its requests."""
        return int(self._tasks[task].config.repeats or 1)

    def items(self, task: str, form: ChatForm, length: int | None) -> Sequence[TaskItem]:
        """Return what is asked about the first documents of a task.

        Raises:
            ConfigurationError: Its requests cannot be sent to an entrant.
        """
        name = task, form, length
        if name not in self._asked:
            self._asked[name] = self._built(task, form, length)
        return self._asked[name]

    def _built(self, name: str, form: ChatForm, length: int | None) -> Sequence[TaskItem]:
        task, is_chat = self._tasks[name], form != "none"
        task.set_fewshot_seed(seed=_OTHER_SEED)
        with _in_quiet():
            task.build_all_requests(
                limit=length,
                apply_chat_template=is_chat,
                fewshot_as_multiturn=form == "turns",
                chat_template=_as_messages if is_chat else None,
            )
            by_document: dict[int, list[Any]] = {}
            for instance in task.instances:
                by_document.setdefault(instance.doc_id, []).append(instance)
            self._instances.setdefault(name, {}).update(by_document)
            targets = [_target_of(task, each[0].doc) for each in by_document.values()]
        try:
            return [
                item
                for (number, instances), target in zip(by_document.items(), targets, strict=True)
                for item in _items_of(
                    partial(RequestName, name, number), instances, target, is_chat=is_chat
                )
            ]
        except ValueError as error:
            raise ConfigurationError([f"task {name!r}: {error}"]) from error

    def scores(
        self, name: str, tasks: Sequence[str], answers: Answers
    ) -> tuple[TaskResults, Mapping[int, tuple[str, float]]]:
        """Return what a task, or a group of tasks, makes of answers.

        A document that lacks one is left out. With the results come, by document, what is compared
        of its answer, and the score of that.
        """
        kept = {task: self._answered(task, answers) for task in tasks}
        if not all(kept.values()):
            return TaskResults(n_documents=0, documents=(), metrics=()), {}
        groups = {name: self._groups[name]} if name in self._groups else {}
        with _in_quiet(), ExitStack() as stack:
            for task, numbers in kept.items():
                stack.enter_context(self._built_again(task, numbers))
            found = evaluate(
                RecordedModel(answers, kept),
                {"tasks": {task: self._tasks[task] for task in kept}, "groups": groups},
                samples=kept,
                bootstrap_iters=_RESAMPLES,
                confirm_run_unsafe_code=self._runs_code,
            )
        documents, samples = kept.get(name, ()), found["samples"].get(name, ())
        means = _means_of(self._tasks[name]) if name in self._tasks else frozenset()
        is_better = found["higher_is_better"].get(name, {})
        metrics = _metrics(found["results"][name], is_better, samples, documents, means)
        results = TaskResults(
            n_documents=sum(map(len, kept.values())),
            documents=tuple(documents),
            metrics=tuple(metrics),
        )
        return results, _answer_scores(samples)

    @contextmanager
    def _built_again(self, name: str, numbers: Sequence[int]) -> Iterator[None]:
        """Let a task ask what it asked of some documents: to build it anew takes as long again."""
        task = self._tasks[name]
        instances = [
            replace(
                instance,
                metadata=(instance.task_name, n, instance.repeats),
                resps=[],
                filtered_resps={},
            )
            for n, number in enumerate(numbers)
            for instance in self._instances[name][number]
        ]
        task.build_all_requests = lambda **_: setattr(task, "_instances", instances)
        try:
            yield
        finally:
            del task.build_all_requests

    def _answered(self, task: str, answers: Answers) -> Sequence[int]:
        """Return the documents of which every request is answered, in order."""
        asked = self._instances[task]
        n_answered = Counter(answer.document for answer in answers if answer.task == task)
        whole = sorted(number for number, n in n_answered.items() if n == len(asked[number]))
        first = range(len(whole))
        return first if whole == [*first] else whole  # it looks up each document in this


def _set_fewshot(task: Any, n_examples: int | None) -> None:  # noqa: ANN401  # as above
    """Set the number of examples as `simple_evaluate` does: 0 in a task stays."""
    configured = task.get_config("num_fewshot")
    if configured is None or (n_examples is not None and configured != 0):
        task.set_config(key="num_fewshot", value=n_examples or 0)


def _as_messages(
    history: Sequence[Mapping[str, str]],
    add_generation_prompt: bool = True,  # noqa: ARG001  # as it calls it; the turns tell
) -> str:
    """Return a chat as JSON: the entrant's template shows it when it is asked."""
    return json.dumps([[each["role"], each["content"]] for each in history])


def _items_of(
    named: Callable[[RequestKind, int], RequestName],
    instances: Sequence[Any],
    target: tuple[str, int | None],
    *,
    is_chat: bool,
) -> Iterator[TaskItem]:
    """Yield what is asked about a document: texts behind one context stand together as choices.

    Raises:
        ValueError: A request is of a kind, or in a form, that no entrant is asked in.
    """
    expected, correct = target
    n_before: Counter[RequestKind] = Counter()
    requests = [_request(each, is_chat=is_chat) for each in instances]
    for (kind, decoding, messages, context), group in groupby(requests, lambda each: each[:-1]):
        texts = tuple(request.text for request in group)
        shown = recorded_text(messages) if messages else context
        is_choice = len(texts) > 1 and correct is not None and correct < len(texts)
        for together in [texts] if is_choice else [(text,) for text in texts]:
            asked: EvaluationItem
            match kind:
                case "loglikelihood":
                    right = correct if is_choice and correct else 0
                    asked = ChoicesItem(context=shown, choices=together, correct=right)
                case "loglikelihood_rolling":
                    asked = TextItem(text=together[0])
                case "generate_until":
                    asked = PromptItem(prompt=shown, expected=expected)
            yield TaskItem(named(kind, n_before[kind]), decoding, messages, asked)
            n_before[kind] += len(together)


class _Request(NamedTuple):
    kind: RequestKind
    decoding: Decoding | None
    messages: Messages
    context: str  # empty if there are messages
    text: str  # empty if an answer is asked for


def _request(instance: Any, *, is_chat: bool) -> _Request:  # noqa: ANN401  # as above
    kind: RequestKind = instance.request_type
    match kind:
        case "loglikelihood":
            context, text = instance.args[:2]
            return _Request(kind, None, *_context(context, is_chat=is_chat), text)
        case "loglikelihood_rolling":
            return _Request(kind, None, (), "", instance.args[0])
        case "generate_until":
            context, settings = instance.args[:2]
            return _Request(kind, _decoding(settings), *_context(context, is_chat=is_chat), "")
    raise ValueError(f"a request is {kind!r}, which is not supported")


def _context(context: str, *, is_chat: bool) -> tuple[Messages, str]:
    if not is_chat or not context:
        return (), context
    try:
        return tuple((role, content) for role, content in json.loads(context)), ""
    except ValueError as error:
        raise ValueError("it makes no chat of its documents; leave out chat") from error


def _decoding(settings: Mapping[str, Any]) -> Decoding:
    told = dict(normalize_gen_kwargs(dict(settings), _MAX_NEW_TOKENS))
    if told.get("num_beams") == 1:
        del told["num_beams"]
    if unknown := sorted(told.keys() - _DECODING):
        raise ValueError(f"generation_kwargs.{unknown[0]} is not supported")
    return Decoding(
        stop=tuple(dict.fromkeys(filter(None, told["until"]))),
        max_new_tokens=told["max_gen_toks"],
        temperature=float(told.get("temperature", 1.0)) if told["do_sample"] else 0.0,
        top_p=float(told.get("top_p", 1.0)),
    )


def _target_of(task: Any, document: Any) -> tuple[str, int | None]:  # noqa: ANN401  # as above
    """Return what is expected, for people, and the index of the right choice, if there is one."""
    target = task.doc_to_target(document)
    choices: Sequence[str] = ()
    if getattr(task.config, "doc_to_choice", None) is not None:
        choices = task.doc_to_choice(document)
    first = target[0] if isinstance(target, list) and target else target
    correct = choices.index(first) if isinstance(first, str) and first in choices else first
    if not isinstance(correct, int) or not 0 <= correct < len(choices):
        return str(first), None
    return str(choices[correct]), correct


def _digest_of(task: Any) -> Digest:  # noqa: ANN401  # as above
    """Digest a task's configuration, and the files of the functions that it names."""
    files = {inspect.getsourcefile(type(task)), *map(_file_of, _functions(vars(task.config)))}
    own = sorted(Path(file).read_bytes() for file in files if file and "/lm_eval/api/" not in file)
    config = task.dump_config()
    config["metadata"] = {
        key: value
        for key, value in (config.get("metadata") or {}).items()
        if key != "config_source"  # a path, which differs from machine to machine
    }
    return digest_of([_as_text(config), [each.decode(errors="replace") for each in own]])


def _functions(value: Any) -> Iterator[Any]:  # noqa: ANN401  # what YAML may hold
    match value:
        case {}:
            for each in value.values():
                yield from _functions(each)
        case [*items]:
            for each in items:
                yield from _functions(each)
        case _ if callable(value):
            yield value


def _file_of(function: Any) -> str | None:  # noqa: ANN401  # as above
    with suppress(TypeError):
        return inspect.getsourcefile(getattr(function, "func", function))  # of a partial
    return None


def _as_text(config: Any) -> str:  # noqa: ANN401  # as above
    return json.dumps(config, sort_keys=True, default=_name_of)


def _name_of(value: object) -> str:
    return str(getattr(value, "__qualname__", type(value).__qualname__))


class RecordedModel(LM):  # type: ignore[misc]  # the package has no types
    """Answers the requests of lm-evaluation-harness by what is on record."""

    def __init__(self, answers: Answers, documents: Mapping[str, Sequence[int]]) -> None:
        """Take the answers, and the documents of each task that are scored."""
        super().__init__()
        self._answers, self._documents = answers, documents

    def loglikelihood(self, requests: Sequence[Any]) -> list[Response]:
        """Return the log-likelihood of each text, and whether greedy decoding gives it."""
        return [*self._recorded("loglikelihood", requests)]

    def loglikelihood_rolling(self, requests: Sequence[Any]) -> list[Response]:
        """Return the log-likelihood of each document."""
        return [*self._recorded("loglikelihood_rolling", requests)]

    def generate_until(self, requests: Sequence[Any]) -> list[Response]:
        """Return each answer."""
        return [*self._recorded("generate_until", requests)]

    def _recorded(self, kind: RequestKind, requests: Sequence[Any]) -> Iterator[Response]:
        n_seen: Counter[tuple[str, int]] = Counter()  # requests that repeat follow one another
        for request in requests:
            task = request.task_name
            place, n_try = divmod(n_seen[task, request.doc_id], request.repeats or 1)
            n_seen[task, request.doc_id] += 1
            document = self._documents[task][request.doc_id]
            tries = self._answers[RequestName(task, document, kind, place)]
            yield tries[min(n_try, len(tries) - 1)]


def _metrics(
    results: Mapping[str, Any],
    higher_is_better: Mapping[str, Any],
    samples: Sequence[Mapping[str, Any]],
    documents: Sequence[int],
    means: frozenset[str],
) -> Iterator[TaskMetric]:
    """Yield the metrics of a task or a group: keys with a comma, as `acc,none`."""
    for key, value in results.items():
        name, comma, chosen = key.partition(",")
        if not comma or name.endswith("_stderr") or not isinstance(value, int | float | np.number):
            continue
        of_documents = {
            sample["doc_id"]: _number(sample.get(name))
            for sample in samples
            if sample["filter"] == chosen
        }
        is_mean = name in means and any(each is not None for each in of_documents.values())
        yield TaskMetric(
            name=name if chosen == _UNFILTERED else key,
            value=_number(value),
            standard_error=_number(results.get(f"{name}_stderr,{chosen}")),
            higher_is_better=bool(higher_is_better.get(name, True)),
            values=tuple(of_documents.get(document) for document in documents) if is_mean else (),
        )


def _means_of(task: Any) -> frozenset[str]:  # noqa: ANN401  # as above
    """Return the metrics of a task that are means over its documents."""
    return frozenset(name for name, combine in task.aggregation().items() if combine is mean)


def _number(value: object) -> float | None:
    """Return a finite number, or None."""
    if not isinstance(value, int | float | np.number) or not isfinite(value):
        return None
    return float(value)


def _answer_scores(samples: Sequence[Mapping[str, Any]]) -> Mapping[int, tuple[str, float]]:
    """Return what the first filter keeps of each answer, and its first metric."""
    found: dict[int, tuple[str, float]] = {}
    for sample in samples:
        kept = sample["filtered_resps"][0]
        score = next((_number(sample[name]) for name in sample["metrics"]), None)
        if isinstance(kept, str) and score is not None:
            found.setdefault(sample["doc_id"], (kept, score))
    return found
