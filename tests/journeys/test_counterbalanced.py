"""Counterbalanced, each pair is asked once, a tenth of them twice; a change owes the difference."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.providers.openai import MODEL, PRICES, FakeOpenAI, Json, Said
from tests.support.builders.commands import write_bank
from tests.support.command_line import paid
from tests.support.command_line.warm import Ended
from tests.support.faults.death import Death

N_PROMPTS: Final = 24
N_PAIRS: Final = 6 * N_PROMPTS
RUBRIC: Final = "<!-- version: 1 -->\n+++\nneeds_gold = false\n+++\n\nSay which is better.\n"
NAMES: Final = ("huge", "large", "medium", "small")
SETTINGS: Final = """\
[tournament]
id = "once"
{entrants}
[[rubrics]]
dimension = "quality"
path = "quality.md"

[judge]
provider = "endpoint"
model = "{model}"
base_url = "{url}"
prices = "prices.toml"

[judging]
orders = "{orders}"
"""
ENTRANT: Final = """
[[entrants]]
id = "{name}"
loader = "recorded"
responses = "answers.csv"
column = "{name}"
"""
JUDGE: Final = ("apply", "judge", "--yes")


class Asked:
    """A tournament of four entrants, whose judge prefers larger ones, and more so slot A."""

    def __init__(self, folder: Path, server: FakeOpenAI) -> None:
        self.folder = folder
        self.server = server

    def settle_for(self, orders: str) -> None:
        """Write the settings."""
        entrants = "".join(ENTRANT.format(name=name) for name in NAMES)
        fields = {"entrants": entrants, "model": MODEL, "url": self.server.url, "orders": orders}
        (self.folder / "tournament.toml").write_text(SETTINGS.format(**fields))

    def tourney(self, *words: str) -> Ended:
        """Run a command, which succeeds."""
        done = paid.tourney(self.folder, *words, url=self.server.url)
        assert done.code == 0, done.err
        return done

    def rows(self, *words: str) -> list[dict[str, Any]]:
        """Return the rows of a command's table."""
        rows: list[dict[str, Any]] = json.loads(self.tourney(*words, "--json").out)["rows"]
        return rows

    @property
    def n_open(self) -> int:
        """How many queries are planned and not answered."""
        return sum(row["n_queries"] for row in self.rows("plan", "judge"))

    @property
    def asked(self) -> Counter[str]:
        """How often each query came."""
        return Counter(str(body["messages"]) for body in self.server.traffic.asked)


def say(body: Json) -> Said:
    """Prefer the larger, or on some prompts the first unless it is much smaller."""
    text = str(body["messages"])
    shown = [(text.find(f"{name} says"), size) for size, name in enumerate(NAMES)]
    (_, first), (_, second) = sorted(each for each in shown if each[0] >= 0)
    lead = int(text.partition("Question p")[2].partition("?")[0]) % 4
    return Said(f"VERDICT: {'A' if first < second + lead else 'B'}")


@pytest.fixture
def once(tmp_path: Path) -> Iterator[Asked]:
    """Give a tournament whose pairs are asked once."""
    ids = [f"p{n}" for n in range(N_PROMPTS)]
    prompts = ({"prompt_id": name, "text": f"Question {name}?"} for name in ids)
    write_bank(tmp_path / "bank.jsonl", prompts)
    answers = [[name, *(f"{each} says {name}." for each in NAMES)] for name in ids]
    lines = map(",".join, [["prompt_id", *NAMES], *answers])
    (tmp_path / "answers.csv").write_text("\n".join(lines))
    (tmp_path / "quality.md").write_text(RUBRIC)
    (tmp_path / "prices.toml").write_text(PRICES)
    with FakeOpenAI(say) as server:
        place = Asked(tmp_path, server)
        place.settle_for("counterbalanced")
        yield place


def prompts_of(row: dict[str, Any]) -> int:
    """Return the number of prompts that a design is forecast on."""
    return int(row["n_prompts"])


def require_forecasts(rows: list[dict[str, Any]]) -> None:
    """Find that designs that ask once ask less of a prompt, and leave more doubt on as many."""
    found = {(row["design"], row["n_prompts"]): row for row in rows}

    both, single = (found[name, N_PROMPTS] for name in ("all pairs", "all pairs, counterbalanced"))
    assert (both["n_queries"], single["n_queries"]) == (0, 0)
    assert 1.0 < single["half_width"] / both["half_width"] < 1.5
    needed = [
        max((row for row in rows if row["design"] == name), key=prompts_of)
        for name in ("all pairs", "all pairs, counterbalanced")
    ]
    assert prompts_of(needed[0]) < prompts_of(needed[1])
    n_queries = [row["n_queries"] / (prompts_of(row) - N_PROMPTS) for row in needed]
    assert n_queries == pytest.approx([12, 6.6], rel=0.15)


def test_each_pair_is_asked_once_and_nothing_is_missing(once: Asked) -> None:
    """About 1.1 queries a pair; all accounts are whole, and both orders are rated alike."""
    n_planned = once.n_open
    once.tourney("run", "--yes")

    assert once.n_open == 0
    planned = once.tourney("plan", "judge").out
    assert "counterbalanced: 9 of 10 pairs are planned in one order" in planned
    assert len(once.asked) == once.asked.total() == n_planned
    assert 1.0 < n_planned / N_PAIRS < 1.2
    pairs = once.rows("project", "matches")
    matches = Counter(row["status"] for row in pairs)
    assert matches.total() == N_PAIRS
    assert not {*matches} - {"a", "b", "inconsistent"}
    progress = once.tourney("status", "--tournament", "once").out
    assert f"{N_PAIRS} pairs = " in progress
    assert progress.count("0 pending") == 1
    assert "pairs judged in both orders are inconsistent" in once.tourney("project", "bt").out
    by_one_order = once.rows("project", "bt")
    assert [row["entrant"] for row in by_one_order] == [*NAMES]
    assert once.tourney("verify").code == 0
    assert once.tourney("replay").out.endswith(" 0 differences\n")
    shown = once.rows("battle", pairs[0]["id"][:12])
    assert {row["status"] for row in shown} == {"answered"}

    once.settle_for("both")
    assert once.n_open == 2 * N_PAIRS - n_planned
    once.tourney("run", "--yes")
    assert len(once.asked) == once.asked.total() == 2 * N_PAIRS
    require_forecasts(once.rows("plan", "judge", "--target", "20"))
    ratings = {row["entrant"]: row for row in once.rows("project", "bt")}
    for row in by_one_order:
        of_both = ratings[row["entrant"]]
        reach = max(row["high"] - row["low"], 1.0)
        assert abs(row["rating"] - of_both["rating"]) < reach

    once.settle_for("counterbalanced")
    assert once.n_open == 0
    again = once.rows("project", "bt")
    assert once.asked.total() == 2 * N_PAIRS
    once.tourney("run", "--yes")
    assert once.rows("project", "bt") == by_one_order != again


@pytest.mark.nightly
@pytest.mark.parametrize("death", [Death(n) for n in range(100, 1500, 100)], ids=str)
def test_killed_and_resumed_it_asks_the_rest(once: Asked, death: Death) -> None:
    """At most the eight requests that were under way are sent again."""
    once.tourney("apply", "generate")
    n_planned = once.n_open
    paid.command(once.folder, *JUDGE, url=once.server.url, death=death).wait()

    once.tourney(*JUDGE)

    assert (once.n_open, len(once.asked)) == (0, n_planned)
    assert once.asked.total() - n_planned <= 8
    assert once.tourney("verify").code == 0
