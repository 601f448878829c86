"""A gate answers by its exit code, as continuous integration reads it."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.providers.openai import FakeOpenAI, Json, Said
from tests.support.command_line.launching import launch, lay_out_recorded
from tests.support.command_line.served import Served
from tests.support.command_line.warm import Ended

BEST, WORST = "full_poe", "base_olmo"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the demo of recorded answers on a part of its bank, judged."""
    folder = lay_out_recorded(tmp_path_factory.mktemp("gate") / "demo", 40)
    done = launch(folder, "run")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize(
    ("words", "code", "verdict"),
    [
        (("--candidate", BEST, "--baseline", WORST, "--margin", "0"), 0, "better"),
        (
            ("--candidate", "security_plus_robustness", "--baseline", BEST, "--margin", "10"),
            6,
            "not enough",
        ),
    ],
)
def test_a_candidate_passes_or_is_stopped(
    demo: Path, words: tuple[str, ...], code: int, verdict: str
) -> None:
    """0 or 6, and a table that says why."""
    done = launch(demo, "gate", *words, "--json")

    (row,) = json.loads(done.stdout)["rows"]
    assert (done.returncode, row["verdict"]) == (code, verdict), done.stderr
    assert row["low"] < row["difference"] < row["high"]
    assert (row["n_more_prompts"] is None) == (code != 6)


def test_a_summary_can_stand_in_a_pull_request(demo: Path) -> None:
    """A table of Markdown and 3: it is worse; what else is to be known is in the job's log."""
    done = launch(demo, "gate", "--candidate", WORST, "--baseline", BEST, "--format", "md")

    assert done.returncode == 3
    assert "| factuality | worse | base\\_olmo | full\\_poe |" in done.stdout
    assert "\nJudge: reference\n\nfactuality: 35 pairs = " in done.stdout  # of the two


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--candidate", "poe", "--baseline", WORST), "entrant 'poe' is not known"),
        (("--candidate", WORST, "--baseline", WORST), "are the same entrant; name two"),
        *(
            (
                ("--candidate", BEST, "--baseline", WORST, "--margin", each),
                f"--margin {float(each):g}: write",
            )
            for each in ("-1", "nan", "1e-200", "1e7")
        ),
        *(
            (("--candidate", BEST, "--baseline", WORST, *given), why)
            for given, why in (
                (("--yes",), "are for what --run asks: add --run"),
                (("--max-usd", "1"), "are for what --run asks: add --run"),
                (("--run", "--as-of", "900"), "--run asks by the settings of today: leave out"),
                (("--run", "--tournament", "x"), "--run asks by the settings of today: leave out"),
            )
        ),
    ],
)
def test_who_cannot_be_compared_is_refused(demo: Path, words: tuple[str, ...], why: str) -> None:
    """A misspelt name must not pass."""
    done = launch(demo, "gate", *words)

    assert done.returncode == 2
    assert why in done.stderr


N_PROMPTS: Final = 40
ENTRANTS: Final = {"old": "old-3b", "new": "new-32b", "beside": "beside-7b"}


class Gated(Served):
    """A tournament of three entrants, and how often each was asked."""

    def __init__(self, folder: Path, server: FakeOpenAI, further: str = "") -> None:
        super().__init__(folder, server, n_prompts=N_PROMPTS, dimensions=("quality", "brevity"))
        self.lay_out(further)

    def lay_out(self, further: str = "", judge: str = "") -> None:
        """Write the settings."""
        entrants = {name: self.at(model) for name, model in ENTRANTS.items()}
        self.configure(entrants, further=further, judge=judge)

    def gate(self, candidate: str, baseline: str, *words: str) -> Ended:
        """Run the gate."""
        pair = ("--candidate", candidate, "--baseline", baseline)
        return self.tourney("gate", *pair, *words, "--json")

    @property
    def n_asked(self) -> Counter[object]:
        """How many requests each model got."""
        return Counter(body["model"] for body in self.server.traffic.asked)


def _say(body: Json) -> Said:
    """The new one wins on quality; on brevity nobody does, but for every third prompt."""
    text = str(body["messages"])
    if body["model"] != "judge-70b":
        return Said(f"{body['model']} says {text[-6:]}.")
    return Said(f"VERDICT: {_verdict_on('brevity' if 'brevity' in text else 'quality', text)}")


def _verdict_on(dimension: str, text: str) -> str:
    names = sorted(["new-32b", "old-3b", "beside-7b"], key=lambda name: text.find(f"{name} says"))
    new_is_first = names[-1] == "old-3b"
    number = int(text.split("Question ")[1].split("?", maxsplit=1)[0])
    if dimension == "brevity" and number % 3:
        return "TIE"
    old_wins = dimension == "brevity" and number % 2 == 1
    return "A" if new_is_first != old_wins else "B"


@pytest.fixture
def gated(tmp_path: Path) -> Iterator[Gated]:
    """Give a tournament of which nothing was asked yet."""
    with FakeOpenAI(_say) as server:
        yield Gated(tmp_path, server)


def test_a_gate_asks_about_the_two_alone_until_it_knows(gated: Gated) -> None:
    """Twenty prompts tell who has more quality; brevity is asked on, and the third one never."""
    done = gated.gate("new", "old", "--run", "--yes", "--margin", "80")

    rows = {row["dimension"]: row for row in json.loads(done.out)["rows"]}
    assert done.code == 0, done.err
    assert rows["quality"]["n_prompts"] == 20
    n_prompts = rows["brevity"]["n_prompts"]
    assert n_prompts > 20
    asked = gated.n_asked
    assert asked == {"new-32b": n_prompts, "old-3b": n_prompts, "judge-70b": 2 * (20 + n_prompts)}

    again = gated.gate("new", "old", "--run", "--yes", "--margin", "80")
    assert (again.code, again.out) == (0, done.out)
    assert gated.n_asked == asked
    assert gated.tourney("verify").code == 0


def test_a_gate_asks_about_all_dimensions_together(tmp_path: Path) -> None:
    """A dimension that is decided costs nothing more to ask beside one that is not."""

    def say(body: Json) -> Said:
        if body["model"] != "judge-70b":
            return _say(body)
        dimensions = ("quality", "brevity")
        texts = {each: _verdict_on(each, str(body["messages"])) for each in dimensions}
        verdicts = {each: {"reasoning": "Read.", "verdict": texts[each]} for each in dimensions}
        return Said(json.dumps(verdicts))

    with FakeOpenAI(say) as server:
        together = Gated(tmp_path, server, "[judging]\ntogether = true\n")
        done = together.gate("new", "old", "--run", "--yes", "--margin", "80")
        asked = together.n_asked

        rows = {row["dimension"]: row for row in json.loads(done.out)["rows"]}
        assert done.code == 0, done.err
        n_prompts = rows["brevity"]["n_prompts"]
        assert asked == {"new-32b": n_prompts, "old-3b": n_prompts, "judge-70b": 2 * n_prompts}
        assert together.tourney("verify").code == 0


def test_a_gate_asks_nothing_without_consent_nor_once_the_candidate_is_worse(gated: Gated) -> None:
    """What another dimension says could not let it pass.

    A cap that the first request may exceed is refused; one that the bank would, is not.
    """
    gated.lay_out(judge='prices = "prices.toml"\n')
    unasked = gated.gate("old", "new", "--run")
    capped = gated.gate("old", "new", "--run", "--yes", "--max-usd", "0.000001")
    assert (unasked.code, capped.code) == (5, 5), unasked.err + capped.err
    assert "the next request may cost $0.0103" in capped.err
    assert gated.n_asked == {}

    done = gated.gate("old", "new", "--run", "--yes", "--max-usd", "0.2")  # the bank: 0.2049
    verdicts = {row["dimension"]: row["verdict"] for row in json.loads(done.out)["rows"]}
    assert (done.code, verdicts) == (3, {"quality": "worse", "brevity": "not enough"})
    assert gated.n_asked["judge-70b"] == 2 * 2 * 20
