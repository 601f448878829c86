"""`tourney evaluate`: one folder of weights, any number of evaluations, a ledger of its own."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from commands.cli import evaluate as module
from commands.cli.evaluate import evaluate
from commands.entrants.chats import ChatForm
from commands.errors import ConfigurationError, EvaluationFault
from commands.evaluating.samples import Inference
from ledger import store
from ledger.errors import NetworkFileSystem, TourneyError
from ledger.events.evaluations import EvaluationPlanned, WayOfAsking
from ledger.events.registration import Entrant
from tests.support.builders.evaluating import answering
from tests.support.command_line.launching import launch
from tests.support.scripted import ScriptedGenerator
from tests.support.weights.headers import write_headers

MINE = """
from tourney import RolloutEvaluation
from longest_of_mine import LONGEST


class Doses(RolloutEvaluation):
    def __len__(self):
        return 5

    def get(self, index):
        return f"What is a dose of {index}?", "20"

    def clean(self, y_hat):
        return y_hat

    def check(self, y, y_hat):
        return len(y_hat) <= LONGEST

    def max_new_tokens(self, inference):
        return 4


class Same(Doses):
    name = "doses"
"""


class Answering:
    """Whoever is evaluated: answers are as long as the entrant's name; keeps what was asked."""

    def __init__(self) -> None:
        """Begin."""
        self.generators: list[ScriptedGenerator] = []

    @property
    def n_asked(self) -> int:
        """How many answers were given in all."""
        return sum(len(each.asked) for each in self.generators)

    @contextmanager
    def inferences(self, *_: object) -> Iterator[Callable[[Entrant], Inference]]:
        """Stand for the backends."""

        def inference(who: Entrant) -> Inference:
            found, generator = answering(lambda task: task.entrant.entrant_id, who)
            self.generators.append(generator)
            return found

        yield inference


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Answering:
    """Give a folder with weights a and bb, and what answers for them."""
    for name in ("a", "bb"):
        (tmp_path / name).mkdir()
        write_headers(tmp_path / name / "model.safetensors", ["F32"] * len(name))
    (tmp_path / "mine.py").write_text(MINE, encoding="utf-8")
    (tmp_path / "longest_of_mine.py").write_text("LONGEST = 1\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    found = Answering()
    monkeypatch.setattr(module, "inferences_on", found.inferences)
    return found


def scores(capsys: pytest.CaptureFixture[str]) -> list[tuple[str, str, float, int]]:
    """Return the scores of the table that was written: entrant, evaluation, value, n."""
    rows = json.loads(capsys.readouterr().out)["rows"]
    return [
        (row["entrant"], row["evaluation"], row["value"], row["n"])
        for row in rows
        if row["metric"] == "score"
    ]


def test_weights_are_evaluated_by_themselves(
    backend: Answering, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without settings; one ledger keeps all weights, and the table is of those that were asked."""
    evaluate(weights=Path("a"), uses=["mine.py:Doses"], as_json=True)
    evaluate(weights=Path("bb").absolute(), uses=["mine.py:Doses"], limit=2, as_json=True)

    assert Path("evaluations.db").exists()
    assert backend.n_asked == 5 + 2
    first, second = capsys.readouterr().out.split("}\n{")
    del first
    assert '"entrant": "bb"' in second
    assert '"entrant": "a"' not in second


def test_a_ledger_on_a_network_is_allowed_as_the_refusal_says(
    backend: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checkpoints lie on a cluster's network, where no settings can allow the ledger."""
    monkeypatch.setattr(store, "foreign_kind", lambda _: "nfs4")  # no test can mount a network
    with pytest.raises(NetworkFileSystem, match="set TOURNEY_NETWORK_LEDGER=true"):
        evaluate(weights=Path("a"), uses=["mine.py:Doses"])

    monkeypatch.setenv("TOURNEY_NETWORK_LEDGER", "true")
    evaluate(weights=Path("a"), uses=["mine.py:Doses"])

    assert backend.n_asked == 5


@pytest.mark.parametrize("limits", [(2, 5), (2, None), (5, 2)])
def test_what_is_on_record_is_not_asked_again(
    backend: Answering, capsys: pytest.CaptureFixture[str], limits: tuple[int, int | None]
) -> None:
    """A command that was stopped is repeated; more items are asked beside those that are there."""
    for limit in limits:
        evaluate(weights=Path("a"), uses=["mine.py:Doses"], limit=limit)
    capsys.readouterr()
    evaluate(weights=Path("./a"), uses=["mine.py:Doses"], as_json=True)

    assert backend.n_asked == 5
    assert scores(capsys) == [("a", "doses", 1.0, 5)]


def test_a_corrected_neighbour_is_a_correction(
    backend: Answering, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rule need not stand in the file of the class."""
    evaluate(weights=Path("bb"), uses=["mine.py:Doses"])
    Path("longest_of_mine.py").write_text("LONGEST = 22\n", encoding="utf-8")
    capsys.readouterr()

    evaluate(weights=Path("bb"), uses=["mine.py:Doses"], as_json=True)

    said = capsys.readouterr()
    assert "5 recorded samples got another score: the evaluation's code changed" in said.err
    assert next(row["value"] for row in json.loads(said.out)["rows"]) == 1.0
    assert backend.n_asked == 5


def test_a_chat_is_an_option_that_is_on_record_whole(backend: Answering) -> None:
    """A digest cannot be read; neither can what the class alone says."""
    ways: list[ChatForm | None] = ["none", "turns", None]
    for chat in ways:
        evaluate(weights=Path("a"), uses=["mine.py:Doses"], chat=chat, limit=1)

    asked = [task.options.is_chat for each in backend.generators for task in each.asked]
    assert asked == [False, True]  # without examples, one turn is what turns are
    with store.Ledger.read_only(Path("evaluations.db")) as ledger:
        plans = [each.event for each in ledger.read() if isinstance(each.event, EvaluationPlanned)]
    assert [each.asking for each in plans[1:]] == [
        WayOfAsking(chat="turns", max_new_tokens=4),
        WayOfAsking(chat="one-turn", max_new_tokens=4),
    ]


def test_weights_that_are_asked_in_another_way_stand_beside_the_first(backend: Answering) -> None:
    """The second would replace the first, and nobody could tell which is which."""
    ways: list[ChatForm | None] = ["turns", "none", None]
    for chat in ways:
        evaluate(weights=Path("a"), uses=["mine.py:Doses"], chat=chat)
    of = ("--ledger", "evaluations.db")

    found = json.loads(launch(Path.cwd(), "project", "metrics", *of, "--json").stdout)["rows"]
    entrants = {row["entrant"] for row in found}

    assert entrants == {"a", "a [turns]", "a [none]"}
    assert backend.n_asked == 2 * 5  # without examples, one turn is what turns are


@pytest.mark.parametrize("uses", ["doses_alone:Doses", "my doses (2).py:Doses"])
def test_a_module_or_a_file_may_have_any_name(
    backend: Answering,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    uses: str,
) -> None:
    """The evaluation's own name is that of its class."""
    for name in ("doses_alone.py", "my doses (2).py"):
        Path(name).write_text(MINE.replace("doses", "alone"), encoding="utf-8")
    monkeypatch.syspath_prepend(Path.cwd())

    evaluate(weights=Path("a"), uses=[uses], as_json=True)

    assert scores(capsys) == [("a", "doses", 1.0, 5)]
    assert backend.n_asked == 5


@pytest.mark.filterwarnings("ignore")  # of lm-evaluation-harness
@pytest.mark.skipif(find_spec("lm_eval") is None, reason="lm-evaluation-harness is not installed")
def test_a_task_file_may_have_any_name(
    backend: Answering, capsys: pytest.CaptureFixture[str]
) -> None:
    """What no id of a table may have becomes a hyphen."""
    task = {
        "task": "t", "dataset_path": "json", "test_split": "test", "doc_to_text": "{{q}}",
        "dataset_kwargs": {"data_files": {"test": "rows.jsonl"}}, "doc_to_target": "{{a}}",
    }  # fmt: skip
    Path("tasks").mkdir()
    Path("tasks/my task (2).yaml").write_text(json.dumps(task), encoding="utf-8")
    Path("tasks/rows.jsonl").write_text('{"q": "?", "a": "a"}\n', encoding="utf-8")

    evaluate(weights=Path("a"), uses=["tasks/my task (2).yaml"], as_json=True)

    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert [row[name] for name in ("evaluation", "metric", "n")] == ["my-task-2-", "exact_match", 1]
    assert backend.n_asked == 1


@pytest.mark.parametrize(
    ("uses", "error", "why"),
    [
        ("", ConfigurationError, "--uses is empty; there are composition"),
        ("broken_alone:Doses", EvaluationFault, "SyntaxError"),
        ("broken_alone.py:Doses", EvaluationFault, r"SyntaxError: .*broken_alone\.py, line 1"),
        ("none_alone:Doses", ConfigurationError, "module 'none_alone' cannot be imported"),
        # no option gives parameters, so no message may ask for them
        ("choices", ConfigurationError, "--uses choices: it needs parameters or prompts"),
        # one's results would hide the other's
        ("mine.py:Same", ConfigurationError, "several evaluations are called doses"),
    ],
)
def test_what_cannot_be_used_is_named_and_leaves_no_ledger(
    backend: Answering,
    monkeypatch: pytest.MonkeyPatch,
    uses: str,
    error: type[TourneyError],
    why: str,
) -> None:
    """An empty ledger would look like a run without results."""
    Path("broken_alone.py").write_text("class Doses(:\n", encoding="utf-8")
    monkeypatch.syspath_prepend(Path.cwd())

    with pytest.raises(error, match=why):
        evaluate(weights=Path("a"), uses=["mine.py:Doses", uses])

    assert (backend.n_asked, Path("evaluations.db").exists()) == (0, False)
