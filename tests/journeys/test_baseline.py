"""Against a baseline a tournament asks fewer pairs; what was asked is never asked again."""

import json
from itertools import islice
from pathlib import Path

import pytest

from commands.settings.inputs import shipped_data
from commands.settings.starting.demo import lay_out_demo
from tests.support.command_line.launching import launch

N_BEFORE, N_PROMPTS = 58, 12  # of the bank: here many answers differ


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    """Give the demo of recorded answers, on less of its bank."""
    folder = tmp_path / "demo"
    lay_out_demo(folder, weights=False)
    with (shipped_data() / "bank.jsonl").open(encoding="utf-8") as prompts:
        (folder / "bank.jsonl").write_text(
            "".join(islice(prompts, N_BEFORE, N_BEFORE + N_PROMPTS)), encoding="utf-8"
        )
    return folder


def against(folder: Path, baseline: str | None) -> None:
    """Compare the entrants with a baseline, or all with each other."""
    settings = folder / "tournament.toml"
    text = settings.read_text(encoding="utf-8").partition("\n[judging]")[0].rstrip()
    said = f'\n\n[judging]\nbaseline = "{baseline}"' if baseline else ""
    settings.write_text(f"{text}{said}\n", encoding="utf-8")


def n_open(folder: Path) -> int:
    """Return how many judge queries are open."""
    planned = launch(folder, "plan", "judge", "--json")
    assert planned.returncode == 0, planned.stderr
    return sum(row["n_queries"] for row in json.loads(planned.stdout)["rows"])


def accounted(folder: Path) -> str:
    """Return how the planned pairs ended."""
    shown = launch(folder, "project", "elo")
    assert shown.returncode == 0, shown.stderr
    (line,) = [line for line in shown.stdout.splitlines() if " pairs = " in line]
    return line


def test_a_baseline_owes_its_own_pairs_and_a_change_the_difference(demo: Path) -> None:
    """Three of six pairs; the next baseline owes two more, all pairs the last one."""
    everything = n_open(demo)
    owed = []
    for baseline, n_pairs in (("base_olmo", 3), ("full_poe", 3), (None, 6)):
        against(demo, baseline)
        owed.append(n_open(demo))
        done = launch(demo, "run")
        assert (done.returncode, n_open(demo)) == (0, 0), done.stderr
        assert accounted(demo).startswith(f"factuality: {n_pairs * N_PROMPTS} pairs = ")

    assert sum(owed) == everything
    assert 0 < owed[1] < owed[0] < everything
    audit = launch(demo, "verify")
    assert audit.returncode == 0, audit.stderr


def test_a_baseline_that_is_no_entrant_is_refused(demo: Path) -> None:
    """A misspelt one would leave nothing to compare."""
    against(demo, "base")

    refused = launch(demo, "run")

    assert refused.returncode == 2
    assert "'judging.baseline' is 'base': not an entrant; known: base_olmo," in refused.stderr
