"""Real processes that share work, joined as on several GPUs."""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from commands.settings.version import VERSION
from tests.support.builders.events import key
from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).parents[4]
# What `accelerate launch` runs on several GPUs; by itself it starts several processes on no CPU.
LAUNCH = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2")


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
        "three1": 0.0, "three2": 0.0, "one1": 1.0, "one2": 1.0, "two1": 0.0, "two2": 0.0,
    }  # fmt: skip
    assert said["answered"] == {key("a"): "0", key("c"): "0", key("b"): "1"}
    assert "torn; mend it" in said["failure"]


def test_the_installed_command_starts_on_every_process_beside_a_folder_of_that_name(
    tmp_path: Path,
) -> None:
    """The line in the docs: `-m tourney` would import the folder that is there."""
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
