"""Evaluating from the command line: planned, done, resumed, compared, and written for others."""

import json
import os
import shutil
from functools import partial
from pathlib import Path

import pytest

from ledger.auditing.audit import audit
from ledger.events.evaluations import EvaluationPlanned, SampleObserved
from ledger.store import Ledger
from tests.support.builders.evaluations import (
    answer,
    choice,
    choices,
    completed,
    document,
    observed,
    plan,
    registrations,
    unscorable,
)
from tests.support.builders.events import STREAM, key, opened
from tests.support.command_line.killing import kill
from tests.support.command_line.launching import Tourney, change, launch
from tests.support.command_line.settled import events_in, fields, head_of
from tests.support.command_line.warm import Running, begin
from tests.support.faults.holder import held_elsewhere

SETTINGS = """
[[evaluations]]
id = "echo"
uses = "mine.py:Echo"
length = 6
samples_per_prompt = 2
temperature = 1.0

[[evaluations]]
id = "choices"
uses = "bank-choices"
length = 4

[[evaluations]]
id = "texts"
uses = "text-perplexity"
parameters = { path = "texts" }
"""
MINE = '''
from commands.evaluating.rollout import RolloutEvaluation


class Echo(RolloutEvaluation):
    """Is the answer longer than so many letters?"""

    name = "echo"

    def __len__(self):
        return 9

    def get(self, index):
        return f"What is a dose of {index}?", "20"

    def clean(self, y_hat):
        return y_hat.strip()

    def check(self, y, y_hat):
        return len(y_hat) > int(y)

    def max_new_tokens(self, inference):
        return 12
'''
N_SAMPLES = 12 + 4 + 6  # of an entrant


@pytest.fixture
def place(place: Path) -> Path:
    """Give the quickstart with three small evaluations, one of them of a file beside it."""
    settings = place / "tournament.toml"
    without_evaluations(place)
    change(settings, "batch_tokens = 2048", "batch_tokens = 300")
    settings.write_text(settings.read_text(encoding="utf-8") + SETTINGS, encoding="utf-8")
    (place / "mine.py").write_text(MINE, encoding="utf-8")
    return place


def without_evaluations(folder: Path) -> None:
    """Cut the evaluations, which stand last, from the settings."""
    settings = folder / "tournament.toml"
    text = settings.read_text(encoding="utf-8").partition("[[evaluations]]")[0]
    settings.write_text(text, encoding="utf-8")


def tables(folder: Path) -> object:
    """Return all metrics, without the position that they were read at."""
    found = json.loads(launch(folder, "project", "metrics", "--json").stdout)
    return found["rows"]


@pytest.mark.parametrize("n_kills", [1, pytest.param(10, marks=pytest.mark.nightly)])
def test_killed_at_random_an_evaluation_ends_as_if_undisturbed(
    place: Path, tmp_path: Path, n_kills: int
) -> None:
    """The same table, and no sample twice; what is owed is told beforehand, and nothing after."""
    undisturbed = shutil.copytree(place, tmp_path / "undisturbed")
    words = ("apply", "evaluate", "--entrant", "base_olmo")
    plan = ("plan", *words[1:], "--exit-code", "--json")
    before = launch(undisturbed, *plan)
    assert not (undisturbed / "tournament.db").exists()
    done = launch(undisturbed, *words)

    kill(place, *words, n_kills=n_kills, furthest=100)
    assert launch(place, *words).returncode == 0
    after = launch(place, *plan)

    seen = [each.natural_key for each in events_in(place, SampleObserved)]
    assert len(seen) == len(set(seen)) == N_SAMPLES
    assert tables(place) == tables(undisturbed)
    assert (before.returncode, done.returncode, after.returncode) == (9, 0, 0), done.stderr
    assert [json.loads(each.stdout)["n_owed"] for each in (before, after)] == [N_SAMPLES, 0]
    assert f"{N_SAMPLES} samples were missing: {N_SAMPLES} observed" in done.stderr


def test_recorded_answers_are_scored_again_without_weights(place: Path, tourney: Tourney) -> None:
    """Another check costs no GPU, and changes nothing on record until more samples are asked."""
    evaluate = partial(tourney, "apply", "evaluate", "--entrant", "base_olmo", "--evaluation")
    evaluate("echo", "--limit", "4")
    metrics = partial(tourney, "project", "metrics", "--json")
    before = json.loads(metrics().stdout)
    (place / "mine.py").write_text(MINE.replace("> int(y)", "<= int(y)"), encoding="utf-8")
    shutil.move(place / "weights", place / "away")

    again, recorded = json.loads(metrics("--rescore").stdout), json.loads(metrics().stdout)

    scores = [row["value"] for row in again["rows"] if row["metric"] == "score"]
    assert scores == [0.0]
    assert recorded == before
    assert before["rows"] != again["rows"]
    export = partial(tourney, "export", "results")
    today, then = export(), export("--as-of", str(before["as_of"]))
    assert "echo is scored again: its code changed since it was evaluated" in today.stderr
    assert (fields(today)["results"], then.stderr) == ({"echo": 0.0}, "")
    assert fields(then)["results"] == {"echo": 1.0}

    shutil.move(place / "away", place / "weights")
    more = evaluate("echo", "--limit", "5")
    scored = "base_olmo on echo: 4 recorded samples were scored by other code; they are scored"
    assert scored in more.stderr
    assert "4 recorded samples got another score: the evaluation's code changed since" in (
        evaluate("echo", "--limit", "5").stderr
    )
    require_an_evaluation_to_score_again(place)


def require_an_evaluation_to_score_again(place: Path) -> None:
    """What nobody defines any more cannot be asked."""
    without_evaluations(place)
    done = launch(place, "project", "metrics", "--rescore")
    (place / "tournament.toml").unlink()
    without = launch(place, "project", "metrics", "--rescore")

    assert (done.returncode, without.returncode) == (2, 2)
    assert "has no [[evaluations]] with id echo" in done.stderr
    assert "scored again by the same `tourney evaluate`" in without.stderr


def test_settings_without_evaluations_say_how_to_have_some(place: Path, tourney: Tourney) -> None:
    """There is nothing to plan."""
    without_evaluations(place)

    done = tourney("plan", "evaluate")

    assert done.returncode == 2
    assert "no [[evaluations]] are configured" in done.stderr


RECALL = plan(n_available=9)
TUNED_RECALL = plan("tuned")
TEXTS = plan(evaluation="texts", kind="perplexity", run_key=key("texts"), higher_is_better=False)
MMLU = plan("tuned", evaluation="mmlu", kind="comparison", run_key=key("mmlu"), n_items=3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder with the ledger of a tournament whose two entrants were evaluated."""
    right, wrong = answer(1.0), answer(0.0, "heparin", finish_reason="length")
    with Ledger.open(tmp_path / "tournament.db") as ledger:
        ledger.append(STREAM, opened())
        ledger.append(STREAM, [*registrations(RECALL), *registrations(TUNED_RECALL)])
        ledger.append(STREAM, [RECALL, *observed(RECALL, [right, wrong, wrong])])
        ledger.append(STREAM, [unscorable(RECALL, 3), completed(RECALL, 3, 1)])
        ledger.append(STREAM, [TUNED_RECALL, *observed(TUNED_RECALL, [right, right, wrong, right])])
        ledger.append(STREAM, [TEXTS, *observed(TEXTS, [document(-2.0), document(-4.0)])])
        seen = observed(MMLU, [choices(choice(-1.0), choice(-2.0))], start=0)
        ledger.append(STREAM, [MMLU, *seen])
    return tmp_path


@pytest.fixture
def tourney_on_record(folder: Path) -> Tourney:
    """Give a function that runs the command line in the folder."""
    return partial(launch, folder)


def test_two_entrants_are_compared_on_what_both_observed(tourney_on_record: Tourney) -> None:
    """On three of four: the one that was unscorable for one of them is left out, and said so."""
    words = ("project", "metrics", "--compare", "base", "tuned")
    found, shown = fields(tourney_on_record(*words, "--json")), tourney_on_record(*words).stdout

    [score] = [row for row in found["rows"] if row["metric"] == "score"]
    assert (found["schema"], found["first"]) == ("tourney/metric-differences@1", "base")
    assert score["difference"] == pytest.approx(1 / 3)
    assert (score["n_pairs"], score["n_left_out"]) == (3, 1)
    assert {row["evaluation"] for row in found["rows"]} == {"recall"}
    assert shown.startswith("tuned minus base")
    assert "recall: 1 sample left out, which only one of them has" in shown


def test_what_is_missing_from_metrics_is_said_beside_them(tourney_on_record: Tourney) -> None:
    """Or nobody would ask: samples, items, intervals, and what cannot be compared."""
    shown = tourney_on_record("project", "metrics").stdout

    for note in (
        "tuned on mmlu is incomplete: 1 of 3 samples of plan 1; evaluate again to continue",
        "base on recall: 4 of 9 items were planned",
        "base on recall: 1 unscorable, too_long: recall[3]: 4,100 tokens",
        "with prompts as clusters",
        "No interval: it takes 6 prompts.",
        "only entrants with the same tokenizer",
    ):
        assert note in shown


def test_what_makes_a_comparison_less_than_fair_is_said(
    folder: Path, tourney_on_record: Tourney
) -> None:
    """Other settings, and another tokenizer."""
    warm = plan("tuned", number=2, settings='{"seed":1}', run_key=key("warm"))
    texts = plan("tuned", evaluation="texts", kind="perplexity", run_key=key("tuned texts"))
    with Ledger.open(folder / "tournament.db") as ledger:
        ledger.append(STREAM, [warm, *observed(warm, [answer()] * 2)])
        ledger.append(STREAM, [texts, *observed(texts, [document(-2.0, n_tokens=3)])])

    done = tourney_on_record("project", "metrics", "--compare", "base", "tuned")

    assert "with different settings: seed None and 1" in done.stdout
    assert "texts: perplexity cannot be compared: the tokenizers differ" in done.stdout


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--entrant", "base", "--compare", "base", "tuned"], "leave out --entrant"),
        (["--entrant", "amy"], "--entrant 'amy' is not on record; evaluated: base, tuned"),
        (
            ["--evaluation", "arc"],
            "--evaluation 'arc' is not on record; evaluated: mmlu, recall, texts",
        ),
        (["--compare", "base", "amy"], "--compare 'amy' is not on record; evaluated: base, tuned"),
        (
            ["--compare", "base", "tuned", "--as-of", "12"],
            "--compare 'tuned' is not on record; evaluated: base",
        ),
        (
            ["--compare", "base", "tuned", "--evaluation", "mmlu"],
            "'base' is not on record; evaluated: tuned",
        ),
    ],
)
def test_what_cannot_be_shown_is_refused(
    tourney_on_record: Tourney, options: list[str], why: str
) -> None:
    """An empty table would be taken for a result."""
    done = tourney_on_record("project", "metrics", *options)

    assert done.returncode == 2
    assert why in done.stderr


def test_entrants_that_share_no_sample_are_not_compared(
    folder: Path, tourney_on_record: Tourney
) -> None:
    """Unpaired, a difference would be one of the items as much as of the entrants."""
    apart = plan("tuned", number=2, items=(key("another"),), run_key=key("apart"))
    with Ledger.open(folder / "tournament.db") as ledger:
        ledger.append(STREAM, [apart, *observed(apart, [answer()])])

    done = tourney_on_record("project", "metrics", "--compare", "base", "tuned")

    assert done.returncode == 2
    assert "evaluate both on the same items" in done.stderr


def test_a_tournament_without_evaluations_says_how_to_have_some(tmp_path: Path) -> None:
    """The first look at it comes before the first evaluation."""
    with Ledger.open(tmp_path / "tournament.db") as ledger:
        ledger.append(STREAM, opened())

    done = launch(tmp_path, "project", "metrics")
    export = launch(tmp_path, "export", "results")

    assert done.returncode == 0
    assert "`tourney apply evaluate`" in done.stdout
    assert export.returncode == 2
    assert "no evaluations on record; run `tourney apply evaluate` first" in export.stderr


def test_results_are_written_for_one_entrant(folder: Path, tourney_on_record: Tourney) -> None:
    """The file that evaluation frameworks write, one for each job."""
    refused = tourney_on_record("export", "results", "-o", "results.json")
    done = tourney_on_record("export", "results", "--entrant", "tuned", "-o", "results.json")

    written = json.loads((folder / "results.json").read_text())
    assert refused.returncode == 2
    assert "choose one with --entrant" in refused.stderr
    assert done.returncode == 0, done.stderr
    assert written["results"] == {"mmlu": 1.0, "recall": 0.75}
    assert written["head"] == head_of(folder / "tournament.db").chain
    assert not written["evaluations"]["mmlu"]["is_complete"]


def test_results_whose_metrics_go_by_one_name_are_written_one_by_one(
    folder: Path, tourney_on_record: Tourney
) -> None:
    """A plan cannot be taken back, so there has to be a way on."""
    word = plan(evaluation="texts_word", kind="perplexity", run_key=key("word"))
    with Ledger.open(folder / "tournament.db") as ledger:
        ledger.append(STREAM, [word, *observed(word, [document(-2.0)])])
    export = partial(tourney_on_record, "export", "results", "--entrant", "base")

    refused, done = export(), export("--evaluation", "texts_word")

    assert refused.returncode == 2
    assert "both have a metric 'texts_word_perplexity'" in refused.stderr
    assert done.returncode == 0, done.stderr
    assert [*json.loads(done.stdout)["results"]] == ["texts_word"]


def test_evaluations_are_part_of_what_is_verified_counted_and_found(
    tourney_on_record: Tourney,
) -> None:
    """They are events like others: nothing that lists events may pass them over."""
    verified = tourney_on_record("verify")
    status = tourney_on_record("status", "--json")
    shown = tourney_on_record("log", RECALL.run_key[:12])

    assert verified.returncode == 0, verified.stdout
    [row] = fields(status)["rows"]
    assert (row["samples"], row["unscorable"]) == (10, 1)
    assert shown.stdout.count('"type": "SampleObserved"') == 3


def waits(command: Running) -> bool:
    """Return whether a command says that it waits for another process."""
    return "waiting for process" in command.err


def test_two_commands_on_one_new_ledger_take_turns(place: Path) -> None:
    """Started at once both would observe the same samples; the second finds them all there."""
    words = ("evaluate", "weights", "--uses", "mine.py:Echo", "--limit", "3")
    with held_elsewhere(place / "evaluations.db.work") as holder:
        both = [begin(place, words, os.environ) for _ in range(2)]
        for each in both:
            each.until(partial(waits, each))
        holder.kill()
        done = [each.wait() for each in both]

    assert [each.code for each in done] == [0, 0], done
    assert done[0].out == done[1].out
    with Ledger.read_only(place / "evaluations.db") as ledger:
        assert audit(ledger) == ()
        events = [recorded.event for recorded in ledger.read()]
    assert sum(isinstance(each, EvaluationPlanned) for each in events) == 1
    assert sum(isinstance(each, SampleObserved) for each in events) == 3
