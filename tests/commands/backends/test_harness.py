"""Tasks of lm-evaluation-harness: asked, recorded, resumed and scored as it does by itself."""

import json
import warnings
from collections.abc import Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import partial
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from commands.backends.wiring import READERS
from commands.decisions.recorder import EvaluationRecorder
from commands.errors import ConfigurationError, EvaluationFault
from commands.evaluating.evaluate import PlannedEvaluation, evaluate_all
from commands.evaluating.plan import plan_alone
from commands.evaluating.samples import Inference
from commands.ports import Continuation, GenerationTask, LikelihoodFailure, no_progress
from commands.settings.sections import EvaluationOptions
from ledger.events.evaluations import EvaluationCompleted, EvaluationPlanned
from ledger.store import Ledger
from projections.evaluations.metrics import compare_runs, metrics_of
from projections.evaluations.samples import asked_evaluations_of, asked_samples
from projections.fold import fold
from tests.support.builders.events import STREAM, entrant
from tests.support.lm_tasks import DRAWN, FETCHING, DrawnTask, draw, name_of, write_task
from tests.support.scripted import ScriptedGenerator, ScriptedReader

pytestmark = pytest.mark.filterwarnings("ignore")  # theirs

ALL = EvaluationOptions()
QUICK = {"mmlu_prox_lite_yo_physics"}


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with warnings.catch_warnings(action="ignore"):  # theirs
        pytest.importorskip("lm_eval.tasks")  # here: not all who run tests should import it
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(tmp_path / "cache"))


def nats(context: str, text: str) -> float:
    """Return some log-likelihood of a text behind a context."""
    return -int(sha256(f"{context}|{text}".encode()).hexdigest()[:6], 16) / 1e5


def is_greedy(text: str) -> bool:
    """Return whether greedy decoding gives a text."""
    return sha256(text.encode()).digest()[0] % 2 == 0


def said(prompt: str) -> str:
    """Return some answer to a prompt, right now and then."""
    letter = "ABCD"[sha256(prompt.encode()).digest()[1] % 4]
    return f" {letter}. the answer is ({letter}). Ìdáhùn náà ni ({letter})"


def reference_model() -> object:
    """Return what answers by the same functions as the entrant, without a ledger."""
    from lm_eval.api.model import LM  # noqa: PLC0415  # it may be missing

    class ReferenceModel(LM):  # type: ignore[misc]  # the package has no types
        """Answers by the same functions as the entrant, without a ledger."""

        def loglikelihood(self, requests: Sequence[Any]) -> list[tuple[float, bool]]:
            """Weigh texts behind contexts."""
            return [(nats(*each.args), is_greedy(each.args[1])) for each in requests]

        def loglikelihood_rolling(self, requests: Sequence[Any]) -> list[float]:
            """Weigh documents."""
            return [nats("", each.args[0]) for each in requests]

        def generate_until(self, requests: Sequence[Any]) -> list[str]:
            """Answer prompts."""
            return [said(each.args[0]) for each in requests]

    return ReferenceModel()


class Killed(BaseException):
    """The process ends here."""


class Scripted:
    """An entrant that answers by the functions above, and may be killed on the way."""

    def __init__(self, dies_after: int | None = None, fails_on: str | None = None) -> None:
        self._left, self._fails_on = dies_after, fails_on
        self.asked: list[str] = []

    @property
    def inference(self) -> Inference:
        """The entrant to evaluate."""
        reader = ScriptedReader(self._weigh, predict=self._predict, batch=3)
        generator = ScriptedGenerator(self._answer, batch=2)
        return Inference(entrant("base"), lambda: generator, lambda: reader)

    def _note(self, request: str) -> None:
        if self._left is not None and len(self.asked) >= self._left:
            raise Killed
        self.asked.append(request)

    def _weigh(self, each: Continuation) -> float | LikelihoodFailure:
        self._note(f"{each.key}")
        if self._fails_on and self._fails_on in each.context:
            return LikelihoodFailure(each.key, "too_long", "more than the window")
        return nats(each.context, each.text)

    @staticmethod
    def _predict(each: Continuation) -> str:
        return each.text if is_greedy(each.text) else "?" * len(each.text)

    def _answer(self, task: GenerationTask) -> str:
        self._note(task.response_key)
        return said(task.prompt_text)


def planned(
    uses: Path | str, who: Scripted, options: EvaluationOptions = ALL
) -> tuple[PlannedEvaluation, ...]:
    """Plan what a file asks."""
    return plan_alone([str(uses)], who.inference, READERS, options)


def evaluate(
    ledger: Ledger, plans: Sequence[PlannedEvaluation], limit: int | None = None
) -> EvaluationRecorder:
    """Observe and record what is missing."""
    recorder = EvaluationRecorder(ledger, STREAM)
    evaluate_all(recorder, plans, on_progress=no_progress, limit=limit)
    return recorder


def numbers(
    recorder: EvaluationRecorder, plans: Sequence[PlannedEvaluation]
) -> dict[str, dict[str, float | None]]:
    """Return the metrics on record, by task."""
    runs = [recorder.state.run(recorder.plan(each.plan, each.registered)) for each in plans]
    return {
        run.plan.task.name: {each.name: each.estimate.value for each in metrics_of(run).metrics}
        for run in runs
        if run.plan.task
    }


def their_tasks() -> Path:
    """Return the folder of the tasks that come with it."""
    return Path(str(import_module("lm_eval").__file__)).parent / "tasks"


def theirs(name: str, folder: Path) -> Mapping[str, Mapping[str, Any]]:
    """Return what lm-evaluation-harness computes by itself."""
    lm_eval = import_module("lm_eval")
    manager = lm_eval.tasks.TaskManager(include_path=str(folder), include_defaults=False)
    with (
        redirect_stdout(StringIO()),
        redirect_stderr(StringIO()),
        chdir(folder),
        pytest.MonkeyPatch.context() as patched,
    ):
        patched.setattr("lm_eval.evaluator.add_env_info", lambda _: None)  # lists all packages
        found = lm_eval.simple_evaluate(
            reference_model(), tasks=[name], task_manager=manager, bootstrap_iters=0
        )
    return {
        task: {
            key.removesuffix(",none"): value
            for key, value in results.items()
            if "," in key and "_stderr," not in key
        }
        for task, results in found["results"].items()
    }


def by_file(task: DrawnTask) -> Any:  # noqa: ANN401  # pytest's
    """Name a case by its file; most are for the night."""
    marks = () if name_of(task) in QUICK else (pytest.mark.nightly,)
    return pytest.param(task, id=name_of(task), marks=marks)


@pytest.mark.parametrize("task", [*map(by_file, DRAWN)])
def test_a_drawn_task_gives_its_own_numbers_also_after_a_kill(
    tmp_path: Path, task: DrawnTask
) -> None:
    """To the last digit, and nothing that was answered is asked again."""
    file = write_task(tmp_path, task, their_tasks())
    whole, resumed = Scripted(), Scripted()
    with Ledger.open(tmp_path / "whole.db") as ledger:
        plans = planned(file, whole)
        found = numbers(evaluate(ledger, plans), plans)
    killed = Scripted(dies_after=len(whole.asked) // 2)
    with Ledger.open(tmp_path / "killed.db") as ledger, pytest.raises(Killed):
        evaluate(ledger, planned(file, killed))
    with Ledger.open(tmp_path / "killed.db") as ledger:
        plans = planned(file, resumed)
        again = numbers(evaluate(ledger, plans), plans)
        evaluate(ledger, planned(file, Scripted(dies_after=0)))

    assert found == again == theirs(name_of(task), tmp_path)
    assert len(whole.asked) == len({*whole.asked})
    assert len(resumed.asked) < len(whole.asked)


@pytest.mark.nightly
def test_the_tasks_are_those_of_the_draw() -> None:
    """The seed decides, but for two that fetch metrics from the network."""
    load_yaml = import_module("lm_eval.tasks._yaml_loader").load_yaml
    drawn = islice(draw(their_tasks(), partial(load_yaml, resolve_func=False)), 23)

    assert [each for each in drawn if each not in FETCHING] == [each.file for each in DRAWN]


def write_sums(folder: Path, **changes: object) -> Path:
    """Write a task of sums, and return its file."""
    rows = [{"q": f"{n} and {n}?", "a": str(2 * n), "wrong": str(n)} for n in range(1, 9)]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    (folder / "sums.jsonl").write_text(lines, encoding="utf-8")
    keys = {
        "task": "sums",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": "sums.jsonl"}},
        "test_split": "test",
        "output_type": "multiple_choice",
        "doc_to_text": "{{q}}",
        "doc_to_choice": "{{[wrong, a]}}",
        "doc_to_target": 1,
        "metric_list": [{"metric": "acc"}, {"metric": "acc_mutual_info"}],
        **changes,
    }
    path = folder / f"{keys['task']}.yaml"
    path.write_text(json.dumps(keys), encoding="utf-8")
    return path


ANSWERED = {
    "output_type": "generate_until",
    "doc_to_choice": None,
    "doc_to_target": "{{a}}",
    "generation_kwargs": {"until": ["\n"], "max_gen_toks": 8},
    "metric_list": [{"metric": "exact_match"}],
    "filter_list": [
        {"name": "letter", "filter": [{"function": "regex", "regex_pattern": "([A-D])"},
                                      {"function": "take_first"}]},
        {"name": "whole", "filter": [{"function": "take_first"}]},
    ],
}  # fmt: skip


def test_a_plan_names_the_task_and_a_completion_has_its_metrics(
    tmp_path: Path, ledger: Ledger
) -> None:
    """With the version and a digest of the task; relative data lies beside the file."""
    file = write_sums(tmp_path)
    evaluate(ledger, planned(file, Scripted()))
    events = [each.event for each in ledger.read()]
    (plan,) = (each for each in events if isinstance(each, EvaluationPlanned))
    (done,) = (each for each in events if isinstance(each, EvaluationCompleted))
    write_sums(tmp_path, description="Add.")
    changed = planned(file, Scripted())[0].plan

    assert plan.task
    assert (plan.task.name, plan.task.version) == ("sums", version("lm_eval"))
    assert done.results
    assert [each.name for each in done.results.metrics] == ["acc", "acc_mutual_info"]
    assert changed.task
    assert changed.task.digest != plan.task.digest


def test_answers_are_scored_by_the_first_filter_and_may_be_looked_at(
    tmp_path: Path, ledger: Ledger
) -> None:
    """The table has each filter's metric under its name."""
    plans = planned(write_sums(tmp_path, **ANSWERED), Scripted())
    recorder = evaluate(ledger, plans)
    state, items = fold(asked_evaluations_of(STREAM), ledger.read())
    samples = [*asked_samples(state.runs[0], items)]

    assert [*numbers(recorder, plans)["sums"]] == ["exact_match,letter", "exact_match,whole"]
    assert {each.cleaned for each in samples} <= {*"ABCD"}
    assert {each.is_right for each in samples} == {False}


def test_a_document_that_cannot_be_scored_is_left_out(tmp_path: Path, ledger: Ledger) -> None:
    """It is no wrong answer."""
    plans = planned(write_sums(tmp_path), Scripted(fails_on="3 and 3"))
    recorder = evaluate(ledger, plans)
    run = recorder.state.runs[0]

    assert metrics_of(run).counts.n_unscorable == 1
    assert {each.estimate.n for each in metrics_of(run).metrics} == {7}


def test_a_group_has_its_own_metrics_beside_those_of_its_tasks(
    tmp_path: Path, ledger: Ledger
) -> None:
    """As lm-evaluation-harness weighs them; a task alone shares the samples."""
    for n in (1, 2):
        write_sums(tmp_path, task=f"sums_{n}", metric_list=[{"metric": "acc"}], num_fewshot=0)
    group = {
        "group": "both",
        "task": ["sums_1", "sums_2"],
        "aggregate_metric_list": [{"metric": "acc"}],
    }
    (tmp_path / "both.yaml").write_text(json.dumps(group), encoding="utf-8")
    plans = planned(tmp_path / "both.yaml", Scripted())
    evaluate(ledger, plans, limit=3)  # the group waits for the others
    recorder = evaluate(ledger, plans)

    assert [each.evaluation.id for each in plans] == ["both.sums_1", "both.sums_2", "both"]
    assert numbers(recorder, plans) == theirs("both", tmp_path)
    evaluate(ledger, planned(tmp_path / "both.yaml", Scripted(dies_after=0)))


def test_runs_of_a_task_are_compared_by_document(tmp_path: Path, ledger: Ledger) -> None:
    """Of as many as both have."""
    file = write_sums(tmp_path)
    first = evaluate(ledger, planned(file, Scripted())).state.runs[0]
    second = evaluate(ledger, planned(file, Scripted(), EvaluationOptions(length=6))).state.runs[0]
    found = compare_runs(first, second)

    assert (found.n_pairs, found.n_left_out) == (6, 2)
    assert (found.metrics[0].name, found.metrics[0].estimate.value) == ("acc", 0.0)


@pytest.mark.parametrize("chat", ["turns", "one-turn"])
def test_a_chat_is_asked_as_turns(tmp_path: Path, chat: str) -> None:
    """The entrant's template shows them, so they are recorded, not its text."""
    options = EvaluationOptions.model_validate({"chat": chat, "length": 1, "system": "Add."})
    changes = {"num_fewshot": 1, "fewshot_split": "test", "description": "Sums."}
    ((plan),) = planned(write_sums(tmp_path, **ANSWERED, **changes), Scripted(), options)
    messages = plan.evaluation.chat_messages(0, "Add.")

    assert messages[0] == ("system", "Add.\n\nSums.")
    assert [role for role, _ in messages[1:]] == (
        ["user", "assistant", "user"] if chat == "turns" else ["user"]
    )


def test_what_an_entrant_cannot_do_is_said_before_anything_runs(tmp_path: Path) -> None:
    """With the key, or the parameter that allows it."""
    beams = {**ANSWERED, "generation_kwargs": {"num_beams": 4}}
    faults = {}
    for name, file in {
        "beams": write_sums(tmp_path, task="beams", **beams),
        "code": write_sums(tmp_path, task="code", unsafe_code=True),
        "nowhere": tmp_path / "nowhere.yaml",
    }.items():
        with pytest.raises(ConfigurationError) as caught:
            planned(file, Scripted())
        faults[name] = str(caught.value)
    with pytest.raises(EvaluationFault, match="'question' is undefined"):
        planned(write_sums(tmp_path, task="field", doc_to_text="{{question}}"), Scripted())

    assert "generation_kwargs.num_beams is not supported" in faults["beams"]
    assert "confirm_run_unsafe_code = true" in faults["code"]
    assert "there is no such file" in faults["nowhere"]
