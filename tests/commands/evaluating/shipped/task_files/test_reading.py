"""Task files become evaluations: what is asked, in parts and under filters; what is refused."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from commands.decisions.recorder import EvaluationRecorder
from commands.evaluating.comparison import PerplexityComparisonEvaluation
from commands.evaluating.evaluate import evaluate_all, plan_evaluation
from commands.evaluating.evaluation import Evaluation
from commands.evaluating.likelihoods import PerplexityEvaluation
from commands.evaluating.rollout import RolloutEvaluation
from commands.ports import no_progress
from commands.settings.sections import EvaluationOptions
from ledger.identity import StreamId
from ledger.store import Ledger
from projections.evaluations.metrics import metrics_of
from tests.support.builders.evaluating import (
    answering,
    make_all,
    reading,
    refusals,
    write_lines,
)

DATA: Final = {"dataset_path": "json", "dataset_kwargs": {"data_files": {"test": "rows.jsonl"}}}
CHOICES: Final = {
    **DATA,
    "task": "capitals",
    "output_type": "multiple_choice",
    "test_split": "test",
    "doc_to_text": "{{question.strip()}}\nAnswer:",
    "doc_to_choice": "{{choices.text}}",
    "doc_to_target": "{{choices.label.index(key)}}",
}
ROW: Final = {
    "question": " Where? ",
    "choices": {"text": ["Rome", "Paris"], "label": ["A", "B"]},
    "key": "B",
}
GENERATED: Final = {
    **DATA,
    "task": "sums",
    "test_split": "test",
    "doc_to_text": "Q: {{question}}\nA:",
    "doc_to_target": "{{answer}}",
    "generation_kwargs": {"until": ["Q:"], "max_gen_toks": 8, "do_sample": False},
    "metric_list": [{"metric": "exact_match", "ignore_case": True, "regexes_to_ignore": [","]}],
    "filter_list": [
        {"name": "strict", "filter": [{"function": "regex", "regex_pattern": "#### (.*)"},
                                      {"function": "take_first"}]},
        {"name": "loose", "filter": [{"function": "regex", "regex_pattern": "([0-9,]+)",
                                      "group_select": -1}]},
    ],
}  # fmt: skip


def write(folder: Path, name: str, keys: Mapping[str, Any], *rows: object) -> None:
    """Write a task file, as JSON, which is YAML; and its data."""
    (folder / name).write_text(json.dumps(keys), encoding="utf-8")
    if rows:
        write_lines(folder / "rows.jsonl", *rows)


def ids(evaluations: tuple[Evaluation, ...]) -> list[str]:
    """Return the names of evaluations."""
    return [each.id for each in evaluations]


def test_a_multiple_choice_task_asks_what_its_templates_say(tmp_path: Path) -> None:
    """And measures its choices without the delimiter, for acc_norm."""
    write(tmp_path, "capitals.yaml", CHOICES, ROW)

    (found,) = make_all("capitals.yaml", tmp_path)

    assert isinstance(found, PerplexityComparisonEvaluation)
    assert (found.id, found.bos) == ("one", False)
    assert found.get(0) == ("Where?\nAnswer:", [" Rome", " Paris"], 1)
    inference, reader = reading(lambda passage: -float(len(passage.text)))
    assert found(inference) == 0.0
    assert not any(each.bos for each in reader.asked)


SHOT: Final = {**ROW, "question": "Which?", "key": "A"}
CHAT: Final = (
    ("system", "Of cities.\n\n"),
    ("user", "Which?\nAnswer:"),
    ("assistant", "Rome"),
    ("user", "Where?\nAnswer:"),
)


IN_ONE: Final = "Which?\nAnswer: Rome\n\nWhere?\nAnswer:"
BEGUN: Final = ("assistant", "It is")


@pytest.mark.parametrize(
    ("chat", "prefix", "messages", "choice"),
    [
        ("turns", None, CHAT, "Paris"),
        ("one-turn", None, (CHAT[0], ("user", IN_ONE)), "Paris"),
        ("turns", "It is", (*CHAT[:2], ("assistant", "It is Rome"), CHAT[3], BEGUN), " Paris"),
        ("none", None, (), " Paris"),
        (None, None, (), " Paris"),
    ],
)  # fmt: skip
def test_a_task_is_shown_as_a_chat_if_it_is_asked_for(
    tmp_path: Path, chat: str | None, prefix: str | None, messages: object, choice: str
) -> None:
    """As lm-evaluation-harness 0.4.13 shows it with --apply_chat_template."""
    keys = {**CHOICES, "description": "Of cities.\n\n", "num_fewshot": 1, "gen_prefix": prefix,
            "fewshot_config": {"sampler": "first_n", "samples": [SHOT]}}  # fmt: skip
    write(tmp_path, "capitals.yaml", keys, ROW)
    (found,) = make_all("capitals.yaml", tmp_path)
    inference, reader = reading(lambda _: -1.0)

    found(inference, chat=chat)

    assert reader.asked[1].messages == messages
    assert reader.asked[1].text == choice


@pytest.mark.parametrize(
    ("delimiter", "between"), [({}, "\n\n"), ({"fewshot_delimiter": "\n"}, "\n")]
)
def test_a_system_prompt_and_a_description_are_joined_as_examples_are(
    tmp_path: Path, delimiter: Mapping[str, str], between: str
) -> None:
    """As lm-evaluation-harness 0.4.13 joins them; metrics alone would not show another prompt."""
    described = {"description": "Of sums.", **delimiter}
    row = {**ROW, "answer": "3"}
    write(tmp_path, "sums.yaml", {**GENERATED, **described}, row)
    write(tmp_path, "capitals.yaml", {**CHOICES, **described}, row)
    last = {"output_type": "loglikelihood", "metric_list": None}
    write(tmp_path, "last.yaml", {**GENERATED, **described, **last}, row)
    answerer, generator = answering(lambda _: "3")
    inference, reader = reading(lambda _: -1.0, predict=lambda _: "3")
    chat = EvaluationOptions(chat="turns", system="Short.")

    for name, asked in (("sums", answerer), ("capitals", inference), ("last", inference)):
        for found in make_all(f"{name}.yaml", tmp_path):
            found(asked, chat="turns", system="Short.")
            settings = found.asked_as(chat).settings(asked, chat)
            assert settings.get("between", "\n\n") == between
            assert "between" not in found.settings(asked, EvaluationOptions())

    expected = {("system", f"Short.{between}Of sums.")}
    assert {each.messages[0] for each in generator.asked} == expected
    assert {each.messages[0] for each in reader.asked} == expected


def test_a_split_of_examples_goes_before_examples_in_the_file(tmp_path: Path) -> None:
    """As in lm-evaluation-harness 0.4.13, which warns of both."""
    keys = {**CHOICES, "num_fewshot": 1, "fewshot_split": "test",
            "fewshot_config": {"sampler": "first_n", "samples": [SHOT]}}  # fmt: skip
    write(tmp_path, "capitals.yaml", keys, ROW, {**ROW, "question": "Whose?"})

    (found,) = make_all("capitals.yaml", tmp_path)

    assert isinstance(found, PerplexityComparisonEvaluation)
    assert found.get(0)[0] == "Whose?\nAnswer: Paris\n\nWhere?\nAnswer:"


def test_a_loglikelihood_task_is_right_if_its_text_is_the_likeliest(tmp_path: Path) -> None:
    """As LAMBADA: there is one text, and nothing to choose from."""
    keys = {**DATA, "task": "last", "output_type": "loglikelihood", "test_split": "test",
            "doc_to_text": "{{text.split(' ')[:-1]|join(' ')}}",
            "doc_to_target": "{{' ' + text.split(' ')[-1]}}"}  # fmt: skip
    write(tmp_path, "last.yaml", keys, {"text": "to be here"}, {"text": "to be there"})

    (found,) = make_all("last.yaml", tmp_path)

    assert isinstance(found, PerplexityComparisonEvaluation)
    assert found.get(0) == ("to be", [" here"], 0)
    inference, _ = reading(lambda _: -2.0, predict=lambda _: " here")
    assert found(inference) == 0.5


def test_a_rolling_task_is_the_perplexity_of_documents(tmp_path: Path) -> None:
    """Its words are those between spaces, with an empty one at an end that has a space."""
    keys = {**DATA, "task": "pile", "output_type": "loglikelihood_rolling", "test_split": "test",
            "doc_to_target": "text"}  # fmt: skip
    write(tmp_path, "pile.yaml", keys, {"text": "to be\n"})

    (found,) = make_all("pile.yaml", tmp_path)

    assert isinstance(found, PerplexityEvaluation)
    values = recorded(found, reading(lambda _: -6.0)[0])
    assert values["word_perplexity"] == pytest.approx(7.389056)
    assert values["byte_perplexity"] == pytest.approx(2.718282)


def recorded(*arguments: Any) -> dict[str, float | None]:  # noqa: ANN401  # evaluations, who answers
    """Return the metrics of the last of some evaluations, from a ledger."""
    *evaluations, inference = arguments
    planned = [plan_evaluation(each, inference, EvaluationOptions()) for each in evaluations]
    with Ledger.in_memory() as ledger:
        recorder = EvaluationRecorder(ledger, StreamId("tasks"))
        evaluate_all(recorder, planned, on_progress=no_progress)
        run = recorder.state.run(recorder.plan(planned[-1].plan, planned[-1].registered))
    return {each.name: each.estimate.value for each in metrics_of(run).metrics}


def test_filters_share_the_answers_and_score_them_apart(tmp_path: Path) -> None:
    """An answer costs; a filter does not."""
    rows = ({"question": "1 + 2?", "answer": "3"}, {"question": "999 + 1?", "answer": "1000"})
    write(tmp_path, "sums.yaml", GENERATED, *rows)
    inference, generator = answering(
        lambda task: "3 #### 3" if "2" in task.prompt_text else "1,000"
    )

    strict, loose = make_all("sums.yaml", tmp_path)

    assert isinstance(strict, RolloutEvaluation)
    assert ids((strict, loose)) == ["one.strict", "one.loose"]
    assert strict.get(0) == ("Q: 1 + 2?\nA:", "3")
    assert recorded(strict, loose, inference)["score"] == 1.0
    assert len(generator.asked) == 2
    assert (generator.asked[0].options.stop, generator.asked[0].options.is_chat) == (("Q:",), False)
    assert recorded(loose, strict, inference)["score"] == 0.5


def test_a_group_is_its_tasks_and_the_mean_of_all_items(tmp_path: Path) -> None:
    """As mmlu is of its subjects, which a tag names; one task includes its template."""
    write(tmp_path, "_template", CHOICES, ROW)
    for name in ("rome", "paris"):
        write(tmp_path, f"{name}.yaml", {"include": "_template", "task": name, "tag": "cities"})
    group = {"group": "both", "task": ["cities"], "aggregate_metric_list": [{"metric": "acc"}]}
    write(tmp_path, "both.yaml", group)

    whole, *parts = make_all("both.yaml", tmp_path)

    assert ids((whole, *parts)) == ["one", "one.paris", "one.rome"]
    assert [len(each) for each in (whole, *parts)] == [2, 1, 1]
    assert whole.label(1) == "rome rows.jsonl:1"


def test_a_group_without_metrics_is_its_tasks_alone(tmp_path: Path) -> None:
    """Of different kinds there is no mean; a task can be named with other keys, or written out."""
    write(tmp_path, "capitals.yaml", CHOICES, ROW)
    tasks = [{"task": "capitals", "num_fewshot": 0}, {**CHOICES, "task": "other"}]
    inner = {"group": "inner", "task": [{**CHOICES, "task": "third"}]}
    write(tmp_path, "all.yaml", {"group": "all", "task": [*tasks, inner]})

    assert ids(make_all("all.yaml", tmp_path)) == ["one.capitals", "one.other", "one.third"]


def test_a_task_of_several_groups_is_evaluated_once(tmp_path: Path) -> None:
    """Under its only name; its items count once in the mean of the whole."""
    write(tmp_path, "capitals.yaml", CHOICES, ROW)
    write(tmp_path, "rivers.yaml", {**CHOICES, "task": "rivers"})
    mean = {"aggregate_metric_list": [{"metric": "acc"}]}
    write(tmp_path, "inner.yaml", {"group": "inner", "task": ["capitals", "rivers"], **mean})
    members = ["capitals", "capitals", "inner"]
    write(tmp_path, "all.yaml", {"group": "all", "task": members, **mean})

    found = make_all("all.yaml", tmp_path)

    assert ids(found) == ["one", "one.capitals", "one.inner", "one.rivers"]
    assert [len(each) for each in found] == [2, 1, 2, 1]


def test_a_file_goes_before_one_of_the_same_name_that_it_includes(tmp_path: Path) -> None:
    """It names the data of the original, which may lie below it."""
    (tmp_path / "a").mkdir()
    (tmp_path / "z").mkdir()
    write(tmp_path, "group.yaml", {"group": "g", "task": ["capitals"]})
    write(tmp_path, "mine.yaml", {"include": "z/original.yaml", **DATA}, ROW, ROW)
    write(tmp_path / "z", "original.yaml", {**CHOICES, "dataset_path": "org/capitals"})
    assert [len(each) for each in make_all("group.yaml", tmp_path)] == [2]

    write(tmp_path / "a", "other.yaml", CHOICES)

    (why,) = refusals("group.yaml", tmp_path)
    assert why == (
        "group.yaml: task is 'capitals', which several files are called: a/other.yaml, mine.yaml"
    )


def test_the_settings_can_choose_the_number_of_examples_and_bos(tmp_path: Path) -> None:
    """Most files leave both to the command line."""
    write(tmp_path, "capitals.yaml", {**CHOICES, "num_fewshot": 1}, ROW, {**ROW, "key": "A"})

    (found,) = make_all("capitals.yaml", tmp_path, num_fewshot=0, bos=True)

    assert isinstance(found, PerplexityComparisonEvaluation)
    assert (found.get(0)[0], found.bos) == ("Where?\nAnswer:", True)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"process_results": "x"}, "process_results is not supported"),
        ({"doc_to_txt": "x"}, "doc_to_txt is not supported; did you mean doc_to_text?"),
        ({"repeats": 2}, "repeats is 2, which is not supported"),
        ({"doc_to_target": None}, "doc_to_target is missing"),
        ({"metric_list": [{"metric": "f1"}]},
         "metric_list.f1 is not supported for multiple_choice; choose of acc, acc_norm"),
        ({"metric_list": [{"metric": "acc", "aggregation": "median"}]},
         "metric_list.acc.aggregation is 'median', which is not supported; it is 'mean'"),
        ({"metric_list": [{"metric": "acc", "higher_is_better": False}]},
         "metric_list.acc.higher_is_better is False, which is not supported"),
        ({"filter_list": [{"name": "a", "filter": [{"function": "majority_vote"}]}]},
         "filter_list.0.filter.0 is {'function': 'majority_vote'}, which is not supported"),
        ({"fewshot_config": {"sampler": "balanced"}},
         "fewshot_config.sampler is 'balanced', which is not supported"),
        ({"generation_kwargs": {"top_k": 5}}, "generation_kwargs.top_k is not supported"),
        ({"dataset_path": "cais/mmlu"}, "dataset_path is 'cais/mmlu', but there is no "),
        ({"dataset_kwargs": {}}, "dataset_path is 'json', so dataset_kwargs.data_files must name"),
        ({"test_split": "dev"}, "dataset_kwargs.data_files has no split 'dev'; it has test"),
        ({"test_split": None}, "test_split and validation_split are missing; name one"),
        ({"doc_to_text": "{{nothing}}"}, "rows.jsonl:1: '{{nothing}}': 'nothing' is undefined"),
        ({"doc_to_text": "{{0}}"}, "rows.jsonl:1: doc_to_text gives '0'; several contexts are"),
        ({"doc_to_target": "{{[0, 1]}}"}, "rows.jsonl:1: doc_to_target gives [0, 1]; several targ"),
        ({"doc_to_target": 2}, "rows.jsonl:1: doc_to_target gives 2, which is none of ['Rome', "),
        ({"doc_to_choice": "key"}, "rows.jsonl:1: doc_to_choice gives 'B'; it must be a list"),
        ({"num_fewshot": 2}, "rows.jsonl:1: num_fewshot is 2, but there are 1 examples"),
    ],
)  # fmt: skip
def test_what_is_not_supported_is_named_with_its_key(
    tmp_path: Path, changes: dict[str, object], why: str
) -> None:
    """A key that is skipped in silence gives another number under the same name."""
    write(tmp_path, "capitals.yaml", {**CHOICES, **changes}, ROW)

    (found,) = refusals("capitals.yaml", tmp_path)

    assert found.removeprefix("capitals.yaml: ").startswith(why)


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"task": ["ghost"]}, "group.yaml: task is 'ghost', but no file in "),
        ({"task": [], "weights": 1}, "group.yaml: weights is not supported in a group"),
        ({"task": [], "aggregate_metric_list": [{"metric": "acc", "weight_by_size": False}]},
         "group.yaml: aggregate_metric_list.weight_by_size is false, which is not supported"),
        ({"task": []}, "group.yaml: task is []; list names of tasks"),
        ({"task": ["capitals", "g"]}, "group.yaml: group 'g' contains itself"),
        ({"task": ["g"], "aggregate_metric_list": [{"metric": "acc"}]},
         "group.yaml: group 'g' contains itself"),
        ({"task": ["capitals", {"task": "capitals", "num_fewshot": 1}]},
         "group.yaml: several tasks are called capitals"),
        ({"task": ["capitals"], "aggregate_metric_list": [{"metric": "perplexity"}]},
         "group.yaml: aggregate_metric_list.perplexity by mean is not supported"),
        ({"task": ["capitals"], "aggregate_metric_list": [{"aggregation": "mean"}]},
         "group.yaml: aggregate_metric_list.metric: it is missing"),
        ({"task": ["capitals", "sums"], "aggregate_metric_list": [{"metric": "acc"}]},
         "group.yaml: aggregate_metric_list is not supported for tasks that differ in output_type"),
    ],
)  # fmt: skip
def test_a_faulty_group_is_named_with_its_key(
    tmp_path: Path, keys: dict[str, object], why: str
) -> None:
    """As a task is."""
    row = {**ROW, "answer": "3"}
    write(tmp_path, "capitals.yaml", CHOICES, row, {**row, "question": "Else?"})
    write(tmp_path, "sums.yaml", GENERATED)
    write(tmp_path, "group.yaml", {"group": "g", **keys})

    assert refusals("group.yaml", tmp_path)[0].startswith(why)
