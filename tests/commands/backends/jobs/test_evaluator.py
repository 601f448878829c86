"""Evaluations from Python: of a model in training, and of checkpoints; named by their content."""

import copy
import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from accelerate import Accelerator  # type: ignore[import-untyped]  # theirs
from peft import PeftModel
from transformers import PreTrainedModel, PreTrainedTokenizerBase, PreTrainedTokenizerFast

import tourney
from commands.backends.jobs.evaluator import Evaluator
from commands.backends.jobs.job import ExecutionSpec
from commands.backends.jobs.subject import checkpoint_model, weights_digest
from commands.backends.weights.folder import load_model, load_tokenizer
from commands.errors import ConfigurationError, WeightsError
from commands.settings.schema import GenerationSection
from commands.settings.sections import Reduce
from ledger import store
from ledger.errors import CannotWrite, NetworkFileSystem
from ledger.events.registration import EntrantRegistered
from ledger.store import Ledger
from tests.docs.own import blocks
from tests.support.builders.evaluating import Capitals, Endings, Letters

FLOAT32 = GenerationSection(dtype="float32", device="cpu")
ATLAS = Capitals(("a dose?", "yes"), ("a patient?", "no"))
SENTENCES = Endings(("a patient asks", (" about", " a dose"), 0), ("a dose", (" a", " of"), 1))
EVALUATIONS = ((ATLAS, {"temperature": 1.0}), SENTENCES, Letters("a patient asks about a dose"))
TEXTS: Mapping[str, Any] = {
    "generation": {"dtype": "float32", "device": "cpu"},
    "evaluations": [{"id": "texts", "uses": "text-perplexity", "parameters": {"path": "texts"}}],
}

each_dtype = pytest.mark.parametrize(
    "dtype",
    [
        torch.float32,
        *(
            pytest.param(each, marks=pytest.mark.nightly)
            for each in (torch.bfloat16, torch.float16)
        ),
    ],
)


@dataclass
class Step:
    """How far a training is."""

    global_step: int


@dataclass
class Training:
    """What an evaluator asks of a trainer."""

    model: PreTrainedModel
    processing_class: PreTrainedTokenizerBase
    state: Step


@pytest.fixture(scope="module")
def loaded(weights: Path) -> PreTrainedModel:
    """Give the weights in memory, to be copied: that is faster than to load them each time."""
    return load_model(weights, torch.float32)


@pytest.fixture
def training(loaded: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> Training:
    """Give a model in training, with dropout that would show."""
    model = copy.deepcopy(loaded)
    model.train(True)
    return Training(model, tokenizer, Step(3))


@pytest.fixture
def spec(tmp_path: Path) -> ExecutionSpec:
    """Give a job; its root may be a text, as paths often are."""
    return ExecutionSpec("probe", root=cast("Path", str(tmp_path)))


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Give a folder of two documents."""
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "one.txt").write_text("a patient asks about a dose")
    (folder / "two.txt").write_text("about a dose")
    return folder


def results(spec: ExecutionSpec) -> Any:  # noqa: ANN401  # JSON
    """Return what a run wrote."""
    return json.loads((spec.folder / "results.json").read_text())


def test_a_model_in_training_is_evaluated_as_its_checkpoint_would_be(
    training: Training, spec: ExecutionSpec, weights: Path
) -> None:
    """The one is in memory, the other on the disk; the numbers are the same."""
    live = Evaluator.from_trainer(training, EVALUATIONS, spec, FLOAT32).evaluate("none")
    saved = Evaluator(spec, checkpoint_model(weights, "saved", FLOAT32), EVALUATIONS, FLOAT32)

    for name, scores in saved.evaluate("none").items():
        np.testing.assert_array_equal(scores, live[name])


def test_a_model_with_an_adapter_in_training_is_evaluated_as_the_model_within(
    lora_model: PeftModel, training: Training, spec: ExecutionSpec
) -> None:
    """What most train is an adapter; endings with a long beginning are read all at once."""
    question = "a patient asks: which dose, and how often? "
    asked = [Endings(*((n * "so " + question, [*"abcdef"], n) for n in range(3)))]

    whole, within = (
        Evaluator.from_trainer(replace(training, model=each), asked, spec, FLOAT32).evaluate("none")
        for each in cast("Sequence[PreTrainedModel]", (lora_model, lora_model.get_base_model()))
    )

    np.testing.assert_array_equal(whole["endings"], within["endings"])


@each_dtype
def test_mixed_precision_is_evaluated_as_the_checkpoint_would_be(
    weights: Path, tmp_path: Path, dtype: torch.dtype
) -> None:
    """A curve that mixes both compares two arithmetics, under the name of one float type."""
    model = load_model(weights, dtype)
    as_checkpoint = Training(load_model(weights, dtype), load_tokenizer(weights), Step(3))
    wrapped = Accelerator(mixed_precision="bf16", cpu=True).prepare_model(model)
    forward = vars(model)["forward"]
    outputs = wrapped(torch.tensor([[5, 6, 7]])).logits

    in_a_loop_of_ones_own = torch.autocast("cpu", torch.bfloat16)
    metrics = {}
    for name, trained, around in (
        ("own", as_checkpoint, nullcontext()),
        ("mixed", replace(as_checkpoint, model=wrapped), nullcontext()),
        ("loop", as_checkpoint, in_a_loop_of_ones_own),
    ):
        evaluator = Evaluator.from_trainer(trained, EVALUATIONS, ExecutionSpec(name, root=tmp_path))
        with around:
            metrics[name] = evaluator() if name == "mixed" else evaluator.evaluate()

    assert metrics["mixed"] == metrics["own"]
    assert metrics["loop"] == metrics["own"]
    assert results(ExecutionSpec("mixed", root=tmp_path))["results"] == metrics["own"]
    assert vars(model)["forward"] == forward
    assert torch.equal(wrapped(torch.tensor([[5, 6, 7]])).logits, outputs)
    with Ledger.read_only(tmp_path / "results/general/default/mixed/evaluations.db") as ledger:
        [who] = ledger.read(types=frozenset({"EntrantRegistered"}))
    registered = cast("EntrantRegistered", who.event)
    assert f"torch.{registered.entrant.dtype}" == str(dtype)


def test_a_training_in_mixed_precision_has_its_curve_and_goes_on_as_without_it(
    weights: Path, spec: ExecutionSpec
) -> None:
    """Each next step, to the last bit; evaluations draw no random number of the training's."""
    ended = []
    for is_evaluated in (True, False):
        torch.manual_seed(7)
        model = load_model(weights, torch.float32)
        wrapped = Accelerator(mixed_precision="bf16", cpu=True).prepare_model(model)
        training = Training(wrapped, load_tokenizer(weights), Step(0))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        for training.state.global_step in (2, 4):
            if is_evaluated:
                Evaluator.from_trainer(training, (EVALUATIONS[0], EVALUATIONS[2]), spec)()
            tokens = torch.arange(5, 25)[None]
            wrapped(tokens, labels=tokens).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        ended.append((weights_digest(model), torch.get_rng_state().tolist()))

    assert ended[0] == ended[1]
    rows = tourney.read(spec.folder / "evaluations.db").curve().rows
    curve = [row for row in rows if row.metric == "bits_per_byte"]
    assert [(row.training, row.step) for row in curve] == [("probe", 2), ("probe", 4)]
    assert curve[0].value != curve[1].value


def test_a_model_of_another_float_type_is_refused(training: Training, spec: ExecutionSpec) -> None:
    """Its results would stand under the name of a type that they are not of."""
    doubled = replace(training, model=training.model.double())

    with pytest.raises(ConfigurationError, match=r"torch.float64.*by model\.to\(torch\.float32\)"):
        Evaluator.from_trainer(doubled, EVALUATIONS, spec, FLOAT32)


def test_a_run_writes_results_and_what_is_on_record_is_not_computed_again(
    training: Training, spec: ExecutionSpec
) -> None:
    """A loop that wants to see what it records would generate everything twice."""
    forward, n_forwards = training.model.forward, []

    def counting(*args: object, **named: object) -> object:
        n_forwards.append(1)
        return forward(*args, **named)

    vars(training.model)["forward"] = counting
    evaluator = Evaluator.from_trainer(training, EVALUATIONS, spec, FLOAT32)
    computed = evaluator.evaluate()
    was_done = evaluator.done
    recorded = evaluator()
    n_forwards.clear()

    written = results(spec)
    assert (was_done, evaluator.done) == (False, True)
    assert {key: written[key] for key in ("job", "project", "group")} == {
        "job": "probe",
        "project": "general",
        "group": "default",
    }
    assert written["results"].keys() == {"capitals", "endings", "letters"}
    assert recorded == evaluator() == evaluator.run() == results(spec)["results"] == computed
    assert evaluator.evaluate() == computed
    with pytest.raises(ConfigurationError, match="choose one of 'mean', 'sum', 'none'"):
        evaluator.evaluate(cast("Reduce", "avg"))
    assert {name: len(each) for name, each in evaluator.evaluate("none").items()} == {
        "capitals": 2,
        "endings": 2,
        "letters": 1,
    }
    assert not n_forwards
    evaluator.evaluate(temperature=3.0)  # which is not on record
    assert n_forwards


def test_a_diverged_model_is_told(training: Training, spec: ExecutionSpec) -> None:
    """It was done, without a result and without a word."""
    with torch.no_grad():
        training.model.get_parameter("lm_head.weight").fill_(float("nan"))
    evaluator = Evaluator.from_trainer(training, EVALUATIONS[1:2], spec, FLOAT32)

    told = r"^endings: 2 of 2 samples could not be scored: not_finite: "
    for call in (evaluator.evaluate, evaluator.run, evaluator, evaluator.evaluate):
        with pytest.warns(UserWarning, match=told):
            found = call()
        assert [*found] == ["endings"]
        assert np.isnan(found["endings"])


def test_the_same_job_waits_where_it_runs_already(training: Training, spec: ExecutionSpec) -> None:
    """Two processes that were started at once would both observe every sample."""
    evaluator, is_alone = Evaluator.from_trainer(training, [ATLAS], spec, FLOAT32), []

    def try_lock(*_: object) -> None:
        with (spec.folder / "evaluations.db.work").open() as work:
            try:
                flock(work, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                is_alone.append(True)

    evaluator.run(try_lock)

    assert is_alone
    with (spec.folder / "evaluations.db.work").open() as work:
        flock(work, LOCK_EX | LOCK_NB)


def test_a_job_on_a_network_is_allowed_as_the_refusal_says(
    training: Training, spec: ExecutionSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job has no settings that could allow it."""
    monkeypatch.setattr(store, "foreign_kind", lambda _: "lustre")  # no test can mount a network
    evaluator = Evaluator.from_trainer(training, [ATLAS], spec, FLOAT32)
    with pytest.raises(NetworkFileSystem, match="set TOURNEY_NETWORK_LEDGER=true"):
        evaluator()

    monkeypatch.setenv("TOURNEY_NETWORK_LEDGER", "true")
    evaluator()

    assert evaluator.done


def test_other_weights_or_terms_are_not_done(training: Training, spec: ExecutionSpec) -> None:
    """A run is named by the weights' content and its options, not by the job's name or a file."""
    evaluator = Evaluator.from_trainer(training, (ATLAS, EVALUATIONS[2]), spec, FLOAT32)
    evaluator()
    before = results(spec)

    with torch.no_grad():
        training.model.get_parameter("lm_head.weight").mul_(0.5)  # a step of training

    assert not evaluator.done
    evaluator()
    assert results(spec)["results"]["letters"] != before["results"]["letters"]
    warmer = [(ATLAS, {"temperature": 2.0})]
    assert not Evaluator.from_trainer(training, warmer, spec, FLOAT32).done


@pytest.mark.usefixtures("texts")
def test_a_checkpoints_configuration_is_kept_for_those_who_resume(
    weights: Path, spec: ExecutionSpec
) -> None:
    """Who goes on need not say again what is evaluated; begun anew, it would be mixed."""
    begun, config = Evaluator.from_checkpoint(weights, spec, TEXTS)
    begun.run()

    with pytest.raises(ConfigurationError, match=r"probe.*exists already; pass resume=True to go"):
        Evaluator.from_checkpoint(weights, spec, TEXTS)
    resumed, same = Evaluator.from_checkpoint(weights, spec, resume=True)

    assert same == config
    assert resumed.done
    assert list(results(spec)["results"]) == ["texts"]


def test_a_job_needs_a_configuration_that_can_be_read(weights: Path, spec: ExecutionSpec) -> None:
    """There is none to resume, it is misspelt, or a disk that was full left half of it."""
    with pytest.raises(ConfigurationError, match="pass runtime_cfg to start the job"):
        Evaluator.from_checkpoint(weights, spec)
    with pytest.raises(ConfigurationError, match=r"evaluation is .*not known here"):
        Evaluator.from_checkpoint(weights, spec, {"evaluation": []})
    spec.folder.mkdir(parents=True)
    (spec.folder / "config.json").write_text('{"evaluations": [')

    with pytest.raises(ConfigurationError, match=r"config.json cannot be read.*pass runtime_cfg"):
        Evaluator.from_checkpoint(weights, spec, resume=True)


@pytest.mark.usefixtures("texts")
@pytest.mark.parametrize("suffix", ["", "nowhere"])
def test_a_job_keeps_its_configuration_where_it_cannot_go_on_with_another(
    weights: Path, spec: ExecutionSpec, suffix: str
) -> None:
    """Else who then goes on with what was there has lost it."""
    _, config = Evaluator.from_checkpoint(weights, spec, TEXTS)
    missing = {"id": "new", "uses": "text-perplexity", "parameters": {"path": "no such folder"}}
    other = {**TEXTS, "evaluations": TEXTS["evaluations"] if suffix else [missing]}

    with pytest.raises((ConfigurationError, WeightsError)):
        Evaluator.from_checkpoint(weights / suffix, spec, other, resume=True)

    assert Evaluator.from_checkpoint(weights, spec, resume=True).config == config


def test_results_that_cannot_be_written_leave_nothing_half(
    training: Training, spec: ExecutionSpec
) -> None:
    """The ledger has them, and the next run writes them."""
    evaluator = Evaluator.from_trainer(training, EVALUATIONS[:1], spec, FLOAT32)
    (spec.folder / "results.json").mkdir(parents=True)

    with pytest.raises(CannotWrite, match=r"results\.json"):
        evaluator.run()

    assert evaluator.done


@pytest.mark.usefixtures("texts")
def test_an_adapter_is_read_with_the_base_that_it_names(
    weights: Path, adapters: tuple[Path, Path], spec: ExecutionSpec, tmp_path: Path
) -> None:
    """Its own folder holds no whole model; which one it belongs to cannot be guessed."""
    (tmp_path / "adapter_config.json").write_text("{}")
    alone, _ = Evaluator.from_checkpoint(weights, spec, TEXTS)
    adapted, _ = Evaluator.from_checkpoint(adapters[0], spec, TEXTS)

    assert alone.evaluate() != adapted.evaluate()
    with pytest.raises(WeightsError, match="base_model_name_or_path"):
        Evaluator.from_checkpoint(tmp_path, spec, TEXTS)


def test_the_examples_of_the_page_run(
    training: Training, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An example that does not run costs its reader the first hour."""
    shutil.copytree(weights, tmp_path / "step_1000")
    monkeypatch.chdir(tmp_path)
    here: dict[str, Any] = {"trainer": training}

    for code in blocks("python"):
        exec(code, here)  # noqa: S102  # ours

    assert here["scores"].keys() == {"micrograms"}
    written = json.loads((tmp_path / "results/olmo/default/probe/results.json").read_text())
    assert written["results"] == here["scores"]
    assert here["resumed"].done


@pytest.mark.usefixtures("texts")
def test_a_relative_checkpoint_is_found(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the root on, wherever the process runs; an absolute one is what it is."""
    folder = "out/checkpoint-60"
    shutil.copytree(weights, tmp_path / folder)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    spec = ExecutionSpec("probe", root=Path(".."))

    relative, _ = Evaluator.from_checkpoint(folder, spec, TEXTS)
    absolute, _ = Evaluator.from_checkpoint(tmp_path / folder, spec, TEXTS)

    assert relative.evaluate() == absolute.evaluate()


@each_dtype
def test_a_checkpoint_keeps_its_float_type_as_a_trainers_model_does(
    weights: Path, tmp_path: Path, dtype: torch.dtype
) -> None:
    """The curve of a training would have a step where its last point is of the checkpoint."""
    model = load_model(weights, dtype)
    model.save_pretrained(tmp_path / "saved")
    load_tokenizer(weights).save_pretrained(tmp_path / "saved")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "one.txt").write_text("a patient asks about a dose")
    tables = {key: value for key, value in TEXTS.items() if key != "generation"}
    live = Evaluator.from_trainer(
        Training(model, load_tokenizer(weights), Step(3)),
        [Letters("a patient asks about a dose").called("texts")],
        ExecutionSpec("live", root=tmp_path),
    )

    saved, _ = Evaluator.from_checkpoint("saved", ExecutionSpec("saved", root=tmp_path), tables)
    saved.run()
    resumed, _ = Evaluator.from_checkpoint(
        "saved", ExecutionSpec("saved", root=tmp_path), resume=True
    )

    assert saved.evaluate() == resumed.evaluate() == live.evaluate()
    assert resumed.done


def test_wrong_arguments_are_refused(training: Training, spec: ExecutionSpec) -> None:
    """A tokenizer that is missing, a class in an object's place, two of one name, a misspelling."""
    without = replace(training, processing_class=cast("PreTrainedTokenizerBase", None))

    with pytest.raises(ConfigurationError, match=r"Trainer\(\.\.\., processing_class=tokenizer\)"):
        Evaluator.from_trainer(without, EVALUATIONS, spec)
    with pytest.raises(ConfigurationError, match=r"is no evaluation; make one of its class, as"):
        Evaluator.from_trainer(training, [cast("Letters", Letters)], spec)
    with pytest.raises(ConfigurationError, match="called capitals"):
        Evaluator.from_trainer(training, [EVALUATIONS[0], EVALUATIONS[0]], spec, FLOAT32)
    evaluator = Evaluator.from_trainer(training, EVALUATIONS, spec, FLOAT32)
    with pytest.raises(ConfigurationError, match="lenght is 3: it is not known here"):
        evaluator.evaluate(lenght=3)


def test_a_ledger_that_nobody_has_begun_is_not_done(
    training: Training, spec: ExecutionSpec
) -> None:
    """Another process has just made the file, or was killed before it held anything."""
    spec.folder.mkdir(parents=True)
    (spec.folder / "evaluations.db").touch()
    evaluator = Evaluator.from_trainer(training, [ATLAS], spec, FLOAT32)

    assert not evaluator.done
    evaluator()
    assert evaluator.done


def test_a_corrected_check_reaches_the_results_of_a_job(
    training: Training, spec: ExecutionSpec
) -> None:
    """The results say what the new code finds, and a warning says so."""

    class Strict(Capitals):
        def check(self, y: str, y_hat: str) -> bool:
            return y == y_hat == ""

    class Lenient(Capitals):
        def check(self, y: str, y_hat: str) -> bool:
            return bool(y) or y_hat == ""

    items = [(f"a dose of {n}?", "yes") for n in range(2)]
    strict, lenient = (
        Evaluator.from_trainer(training, [kind(*items).called("doses")], spec)
        for kind in (Strict, Lenient)
    )

    assert strict() == results(spec)["results"] == {"doses": 0.0}
    assert not lenient.done
    with pytest.warns(UserWarning, match="^2 recorded samples got another score: the e"):
        lenient()

    assert results(spec)["results"] == {"doses": 1.0}
    assert lenient.done


def test_each_step_is_reported_once(training: Training, spec: ExecutionSpec) -> None:
    """What is done is not evaluated again, and so not reported again."""
    reading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    evaluator = Evaluator.from_trainer(
        training, EVALUATIONS[1:2], spec, FLOAT32, report_to=["tensorboard"]
    )

    for step in (3, 3, 4):
        training.state.global_step = step
        with torch.no_grad():
            training.model.get_parameter("lm_head.weight").fill_(1 / step)
        evaluator()

    written: Any = reading.EventAccumulator(str(spec.folder / "tensorboard"))
    written.Reload()
    assert [each.step for each in written.Scalars("endings/acc")] == [3, 4]
    assert results(spec)["metrics"]["endings_acc"]["value"] == pytest.approx(
        written.Scalars("endings/acc")[-1].value
    )
