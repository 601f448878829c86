"""Counterbalanced, each pair is asked once, a tenth of them twice; a change owes the difference."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.providers.openai import FakeOpenAI, Json, Said
from tests.support.command_line import paid
from tests.support.command_line.served import Served
from tests.support.faults.death import Death

N_PROMPTS: Final = 24
N_PAIRS: Final = 6 * N_PROMPTS
NAMES: Final = ("huge", "large", "medium", "small")
APPLY: Final = ("apply", "judge", "--yes")


class Once(Served):
    """A tournament of four entrants, whose judge prefers larger ones, and more so slot A."""

    def settle_for(self, orders: str) -> None:
        """Write the settings."""
        recorded = 'loader = "recorded"\nresponses = "answers.csv"\ncolumn = "{}"\n'
        entrants = {name: recorded.format(name) for name in NAMES}
        judging = f'[judging]\norders = "{orders}"\n'
        self.configure(entrants, further=judging, judge='prices = "prices.toml"\n')

    def said(self, *words: str) -> str:
        """Return what a command prints, which succeeds."""
        done = self.tourney(*words)
        assert done.code == 0, done.err
        return done.out

    @property
    def n_open(self) -> int:
        """How many queries are planned and not answered."""
        return sum(row["n_queries"] for row in self.rows("plan", "judge"))

    @property
    def n_by_query(self) -> Counter[str]:
        """How often each query came."""
        return Counter(str(body["messages"]) for body in self.asked())


def say(body: Json) -> Said:
    """Prefer the larger, or on some prompts the first unless it is much smaller."""
    text = str(body["messages"])
    shown = [(text.find(f"{name} says"), size) for size, name in enumerate(NAMES)]
    (_, first), (_, second) = sorted(each for each in shown if each[0] >= 0)
    lead = int(text.partition("Question ")[2].partition("?")[0]) % 4
    return Said(f"VERDICT: {'A' if first < second + lead else 'B'}")


@pytest.fixture
def once(tmp_path: Path) -> Iterator[Once]:
    """Give a tournament whose pairs are asked once."""
    answers = [[f"p{n}", *(f"{each} says p{n}." for each in NAMES)] for n in range(N_PROMPTS)]
    lines = map(",".join, [["prompt_id", *NAMES], *answers])
    (tmp_path / "answers.csv").write_text("\n".join(lines))
    with FakeOpenAI(say) as server:
        place = Once(tmp_path, server, n_prompts=N_PROMPTS)
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


def test_each_pair_is_asked_once_and_nothing_is_missing(once: Once) -> None:
    """About 1.1 queries a pair; all accounts are whole, and both orders are rated alike."""
    n_planned = once.n_open
    once.said("run", "--yes")

    assert once.n_open == 0
    planned = once.said("plan", "judge")
    assert "counterbalanced: 9 of 10 pairs are planned in one order" in planned
    assert len(once.n_by_query) == once.n_by_query.total() == n_planned
    assert 1.0 < n_planned / N_PAIRS < 1.2
    pairs = once.rows("project", "matches")
    matches = Counter(row["status"] for row in pairs)
    assert matches.total() == N_PAIRS
    assert not {*matches} - {"a", "b", "inconsistent"}
    progress = once.said("status", "--tournament", "served")
    assert f"{N_PAIRS} pairs = " in progress
    assert progress.count("0 pending") == 1
    assert "pairs judged in both orders are inconsistent" in once.said("project", "bt")
    by_one_order = once.rows("project", "bt")
    assert [row["entrant"] for row in by_one_order] == [*NAMES]
    once.said("verify")
    assert once.said("replay").endswith(" 0 differences\n")
    shown = once.rows("battle", pairs[0]["id"][:12])
    assert {row["status"] for row in shown} == {"answered"}

    once.settle_for("both")
    assert once.n_open == 2 * N_PAIRS - n_planned
    once.said("run", "--yes")
    assert len(once.n_by_query) == once.n_by_query.total() == 2 * N_PAIRS
    require_forecasts(once.rows("plan", "judge", "--target", "20"))
    ratings = {row["entrant"]: row for row in once.rows("project", "bt")}
    for row in by_one_order:
        of_both = ratings[row["entrant"]]
        reach = max(row["high"] - row["low"], 1.0)
        assert abs(row["rating"] - of_both["rating"]) < reach

    once.settle_for("counterbalanced")
    assert once.n_open == 0
    again = once.rows("project", "bt")
    assert once.n_by_query.total() == 2 * N_PAIRS
    once.said("run", "--yes")
    assert once.rows("project", "bt") == by_one_order != again


@pytest.mark.nightly
@pytest.mark.parametrize("death", [Death(n) for n in range(100, 1500, 100)], ids=str)
def test_killed_and_resumed_it_asks_the_rest(once: Once, death: Death) -> None:
    """At most the eight requests that were under way are sent again."""
    once.said("apply", "generate")
    n_planned = once.n_open
    paid.command(once.folder, *APPLY, url=once.server.url, death=death).wait()

    once.said(*APPLY)

    assert (once.n_open, len(once.n_by_query)) == (0, n_planned)
    assert once.n_by_query.total() - n_planned <= 8
    once.said("verify")
