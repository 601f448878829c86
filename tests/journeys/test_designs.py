"""Against a baseline, or sparse, fewer pairs are asked; what was asked is never asked again."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line.launching import bring_prompts, launch, lay_out_recorded
from tests.support.command_line.settled import said

N_PROMPTS = 6


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    """Give the demo of recorded answers, on less of its bank."""
    return lay_out_recorded(tmp_path / "demo", N_PROMPTS)


@pytest.fixture(scope="module")
def judged_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the demo after a run on 30 prompts, to be copied."""
    folder = lay_out_recorded(tmp_path_factory.mktemp("designs") / "demo", 30)
    launch(folder, "run")
    return folder


@pytest.fixture
def judged(judged_once: Path, tmp_path: Path) -> Path:
    """Give the demo after a run on 30 prompts."""
    return shutil.copytree(judged_once, tmp_path / "judged")


def judge_by(folder: Path, design: str | None) -> None:
    """Write a design into the settings; None: all pairs meet."""
    settings = folder / "tournament.toml"
    text = settings.read_text(encoding="utf-8").partition("\n[judging]")[0].rstrip()
    table = f"\n\n[judging]\n{design}" if design else ""
    settings.write_text(f"{text}{table}\n", encoding="utf-8")


def n_open(folder: Path) -> int:
    """Return how many judge queries are open."""
    return sum(row["n_queries"] for row in said(folder, "plan", "judge")["rows"])


def accounted(folder: Path) -> str:
    """Return how the planned pairs ended."""
    shown = launch(folder, "project", "elo")
    assert shown.returncode == 0, shown.stderr
    (line,) = [line for line in shown.stdout.splitlines() if " pairs = " in line]
    return line


def test_a_design_owes_its_own_pairs_and_a_change_the_difference(demo: Path) -> None:
    """Sparse, two of six pairs on each prompt; then those with a baseline, then all."""
    everything = n_open(demo)
    assert launch(demo, "apply", "generate").returncode == 0
    judge_by(demo, "sparse = 2")
    assert "sparse: 2 of 6 pairs are planned on each prompt" in launch(demo, "plan", "judge").stdout
    owed = []
    for design, n_pairs in (("sparse = 2", 2), ('baseline = "base_olmo"', 3), (None, 6)):
        judge_by(demo, design)
        owed.append(n_open(demo))
        done = launch(demo, "apply", "judge")
        assert done.returncode == 0, done.stderr
        account = accounted(demo)
        assert account.startswith(f"factuality: {n_pairs * N_PROMPTS} pairs = ")
        assert account.endswith("+ 0 pending")

    assert sum(owed) == everything
    assert all(0 < each < everything for each in owed)
    judge_by(demo, "sparse = 2")
    assert n_open(demo) == 0
    audit = launch(demo, "verify")
    assert audit.returncode == 0, audit.stderr


@pytest.mark.parametrize(
    ("design", "why"),
    [
        ("sparse = 7", "'judging.sparse' is 7: 4 entrants have 6 pairs; leave it out to compare"),
        ('sparse = 2\nbaseline = "base_olmo"', "'judging.baseline' are both set; leave one out"),
        ("sparse = 0", "'judging.sparse'"),
        ('baseline = "base"', "'judging.baseline' is 'base': not an entrant; known: base_olmo,"),
    ],
)
def test_a_design_that_cannot_be_is_refused(demo: Path, design: str, why: str) -> None:
    """One sentence says what to change."""
    judge_by(demo, design)

    refused = launch(demo, "run")

    assert refused.returncode == 2
    assert why in refused.stderr


def test_entrants_are_linked_on_the_prompts_that_are_judged(demo: Path) -> None:
    """A pilot of two prompts, or gold answers to two, leave some unrated whatever the bank has."""
    bring_prompts(demo, 12)
    judge_by(demo, "sparse = 1")
    assert launch(demo, "plan", "judge").returncode == 0

    pilot = launch(demo, "run", "--mode", "pilot")
    bank = demo / "bank.jsonl"
    prompts = [json.loads(line) for line in bank.read_text(encoding="utf-8").splitlines()]
    for prompt in prompts[2:]:
        prompt.pop("gold_answer")
    bank.write_text("".join(f"{json.dumps(prompt)}\n" for prompt in prompts), encoding="utf-8")
    headline = launch(demo, "apply", "generate")

    for refused in (pilot, headline):
        assert refused.returncode == 2
        assert "[judging] sparse = 1 does not link all 4 entrants on 2 prompts" in refused.stderr
    assert "set it to 2 or more, or judge more prompts" in pilot.stderr
    assert not (demo / "tournament.db").exists()


def forecast(folder: Path, *words: str) -> list[dict[str, Any]]:
    """Return the designs that are compared."""
    rows: list[dict[str, Any]] = said(folder, "plan", "judge", *words)["rows"]
    return rows


def test_the_cheapest_design_that_is_precise_enough_is_marked(judged: Path) -> None:
    """Each on the bank's prompts and on as many as it needs; what is judged is not asked again.

    Verdicts before a design was chosen are evidence, and are not charged.
    """
    rows = forecast(judged, "--target", "30")

    pairs = ("all pairs", "sparse = 2", "sparse = 4", 'baseline = "base_olmo"')
    assert {row["design"] for row in rows} == {
        *pairs,
        *(f"{name}, counterbalanced" for name in pairs),
    }
    enough = [row for row in rows if row["half_width"] <= 30.3]
    (cheapest,) = [row for row in rows if row["meets"] == "cheapest"]
    assert cheapest["n_queries"] == min(row["n_queries"] for row in enough)
    assert [row for row in rows if row["meets"] != "no"] == enough
    for design in {row["design"] for row in rows}:  # on as many prompts as it takes, and no more
        widest = max(
            (row for row in rows if row["design"] == design), key=lambda row: row["n_prompts"]
        )
        assert widest["n_prompts"] == 30 or 29.0 <= widest["half_width"] <= 30.3
    on_bank = [row for row in rows if row["n_prompts"] == 30]
    assert [row["n_queries"] for row in on_bank] == [0] * 8
    judge_by(judged, "sparse = 2")
    assert forecast(judged, "--target", "30") == rows


def test_two_entrants_are_told_apart_on_as_many_prompts_as_their_gap_takes(
    judged_once: Path,
) -> None:
    """In 4 of 5, if the gap is as it was judged."""
    rows = forecast(judged_once, "--separate", "full_poe", "security_plus_robustness")
    refused = launch(
        judged_once, "plan", "judge", "--separate", "full_poe", "security_and_robustness"
    )

    assert 'baseline = "security_plus_robustness"' in {row["design"] for row in rows}
    found = {(row["design"], row["n_prompts"] > 30): row for row in rows}
    for design in {row["design"] for row in rows}:
        on_bank, on_needed = (found.get((design, is_more)) for is_more in (False, True))
        assert on_needed is None or 0.79 <= on_needed["power"] <= 0.87  # enough, and no more
        assert on_needed is not None or (on_bank and on_bank["power"] >= 0.79)
        assert on_bank is None or on_needed is None or on_bank["meets"] == "no"
    assert len({row["n_prompts"] for row in rows}) > 1
    assert refused.returncode == 2
    assert "did you mean 'security_plus_robustness'" in refused.stderr


def test_equals_are_told_apart_on_no_number_of_prompts(judged: Path) -> None:
    """The same answers under two names have no gap."""
    file = judged / "tournament.toml"
    twin = 'id = "twin"\nloader = "recorded"\nresponses = "answers.csv"\nmodel = "full_poe"'
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("[[rubrics]]", f"[[entrants]]\n{twin}\n\n[[rubrics]]"))
    launch(judged, "run")

    shown = launch(judged, "plan", "judge", "--separate", "full_poe", "twin")

    assert shown.returncode == 0, shown.stderr
    assert "full_poe, twin are rated equal so far" in shown.stdout
    assert "sparse" not in shown.stdout


@pytest.mark.parametrize("target", ["nan", "0"])
def test_a_target_is_a_number_above_0(demo: Path, target: str) -> None:
    """No design meets what is not a number."""
    refused = launch(demo, "plan", "judge", "--target", target)

    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr
    assert "--target" in refused.stderr


def test_without_verdicts_a_pilot_has_its_price(demo: Path) -> None:
    """Of a judge that is paid, in dollars; nothing is sent. Too small a bank has none."""
    short = launch(demo, "plan", "judge", "--target", "30")
    assert "add prompts to the 6 that can be judged" in short.stdout
    bring_prompts(demo, 30)
    settings = demo / "tournament.toml"
    text = settings.read_text(encoding="utf-8").partition("\n[judge]")[0]
    judge = '[judge]\nprovider = "anthropic"\nmodel = "claude-haiku-4-5"\neffort = "none"\n'
    settings.write_text(f"{text}\n\n{judge}", encoding="utf-8")

    shown = launch(demo, "plan", "judge", "--target", "30")

    assert shown.returncode == 0, shown.stderr
    (note,) = [line for line in shown.stdout.splitlines() if "no forecast" in line]
    assert "a pilot of 20" in note
    assert float(note.rpartition("$")[2]) > 0.1
