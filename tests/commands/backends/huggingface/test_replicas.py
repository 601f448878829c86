"""Work that several processes share: each piece once, what goes together in one place."""

import json
import subprocess
import sys
import sysconfig
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.backends.huggingface.replicas import deal
from commands.settings.version import VERSION
from tests.support.builders.events import key
from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).parents[4]
# What `accelerate launch` runs on several GPUs; by itself it starts several processes on no CPU.
LAUNCH = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2")


@given(st.lists(st.integers(0, 9)), st.integers(1, 4))
def test_every_piece_is_dealt_once(work: list[int], n: int) -> None:
    """Nothing is done twice, or not at all."""
    hands = deal(work, lambda each: each, n)

    assert len(hands) == n
    assert Counter(work) == Counter(each for hand in hands for each in hand)


@given(st.lists(st.integers(0, 99)), st.integers(1, 4))
def test_what_has_one_key_goes_to_one_process(work: list[int], n: int) -> None:
    """Passages of one context are read together."""
    hands = deal(work, lambda each: each % 10, n)

    owners = [{each % 10 for each in hand} for hand in hands]
    assert sum(map(len, owners)) == len(set.union(*owners))
    sizes = [len(keys) for keys in owners]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.nightly
def test_a_bug_in_the_first_process_ends_the_others() -> None:
    """Told that there is no more, they would wait for days: they are gathering what came of it."""
    script = ("-m", "tests.support.weights.replicas", "bug")
    done = subprocess.run(
        [*LAUNCH, *script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )

    assert done.returncode != 0
    assert "RuntimeError: bug" in done.stderr


def test_two_processes_share_work_and_one_tells_of_the_others_failure() -> None:
    """Real processes, joined by accelerate on this machine's CPU."""
    script = ("-m", "tests.support.weights.replicas")
    done = subprocess.run(
        [*LAUNCH, *script], cwd=ROOT, capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )

    said = json.loads(done.stdout)
    assert said["read"] == {
        "one1": 0.0, "one2": 0.0, "two1": 1.0, "two2": 1.0, "three1": 0.0, "three2": 0.0,
    }  # fmt: skip
    assert said["answered"] == {key("a"): "0", key("c"): "0", key("b"): "1"}
    assert "torn; mend it" in said["failure"]


def test_the_installed_command_starts_on_every_process_beside_a_folder_of_that_name(
    tmp_path: Path,
) -> None:
    """The line in the README: `-m commands.cli` would find the folder that happens to be there."""
    (tmp_path / "commands").mkdir()
    (tmp_path / "commands" / "__init__.py").write_text("raise SystemExit\n", encoding="utf-8")
    script = Path(sysconfig.get_path("scripts")) / "tourney"

    done = subprocess.run(
        [*LAUNCH, str(script), "--version"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )

    assert done.stdout == f"tourney {VERSION}\n" * 2, done.stderr
