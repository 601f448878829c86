"""results.json, as an evaluation framework's readers expect it."""

import json

import pytest

from ledger.chain import Head
from projections.artifacts.evaluations import MetricsCollide, results_file, results_of
from projections.evaluations.metrics import metrics_of
from projections.evaluations.state import EvaluationRun
from tests.support.builders.evaluations import answer, document, observed, plan, run_of, unscorable
from tests.support.builders.events import STREAM, key

HEAD = Head(12, key("head"))
RECALL = plan(n_items=3, settings='{"seed":7}')
TEXTS = plan(evaluation="texts", kind="perplexity", run_key=key("texts"), higher_is_better=False)


def results(*runs: EvaluationRun) -> dict[str, object]:
    """Return what a reader of the file finds."""
    found: dict[str, object] = json.loads(
        results_file(results_of("base", runs, project=STREAM, as_of=HEAD))
    )
    return found


def test_there_is_one_number_for_each_evaluation() -> None:
    """What reads such files takes these four fields, and nothing else."""
    recall = run_of(RECALL, *observed(RECALL, [answer(1.0), answer(0.0)]))
    texts = run_of(TEXTS, *observed(TEXTS, [document(0.0), document(0.0)]))

    found = results(recall, texts)

    assert found["job"] == "base"
    assert found["project"] == STREAM
    assert found["group"] == "default"
    assert found["results"] == {"recall": 0.5, "texts": 1.0}


def test_how_sure_each_metric_is_and_of_what_stands_beside_it() -> None:
    """A number alone can be neither trusted nor found again."""
    recall = run_of(RECALL, *observed(RECALL, [answer(1.0)]), unscorable(RECALL, 2))

    found = results(recall)

    assert found["metrics"] == {
        f"recall_{metric.name}": json.loads(json.dumps(metric.fields))
        for metric in metrics_of(recall).metrics
    }
    assert found["evaluations"] == {
        "recall": {
            "kind": "rollout",
            "plan": 1,
            "run_key": RECALL.run_key,
            "settings": {"seed": 7},
            "n_samples": 1,
            "n_available": 3,
            "n_planned": 3,
            "n_observed": 1,
            "n_unscorable": 1,
            "n_truncated": 0,
            "n_length_limited": 0,
            "is_complete": False,
        }
    }
    assert (found["as_of"], found["head"]) == (12, key("head"))


def test_an_evaluation_without_a_value_has_no_number() -> None:
    """Readers take numbers only; null or NaN would stop them, and 0 would be a claim."""
    assert results(run_of(RECALL))["results"] == {}


def test_two_metrics_of_one_name_are_refused() -> None:
    """The later would stand where the earlier is looked for."""
    word = plan(evaluation="texts_word", kind="perplexity", run_key=key("word"))

    with pytest.raises(MetricsCollide, match="'texts' and 'texts_word' both have") as caught:
        results(run_of(TEXTS), run_of(word))

    assert caught.value.name == "texts_word_perplexity"
