"""A process that is killed at any moment loses nothing recorded, and does nothing twice."""

import os
import random
import shutil
import signal
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from ledger.audit import audit
from ledger.events.judging import PairReconciled, VerdictReceived
from ledger.events.responses import ResponseGenerated
from ledger.events.values import type_name
from ledger.identity import StreamId
from ledger.store import Ledger
from tests.commands.cli.conftest import launch
from tests.commands.cli.warm import begin


class Held(NamedTuple):
    """What a ledger holds, places and times left out."""

    responses: dict[str, str]
    verdicts: dict[str, str]
    outcomes: dict[tuple[str, ...], str]
    n_by_type: Counter[str]


def held_by(path: Path) -> Held:
    """Read a ledger that must be without fault."""
    with Ledger.read_only(path) as ledger:
        assert audit(ledger) == ()
        events = [recorded.event for recorded in ledger.read(stream=StreamId("quickstart"))]
    return Held(
        {each.response_key: each.text for each in events if isinstance(each, ResponseGenerated)},
        {each.query_key: each.verdict for each in events if isinstance(each, VerdictReceived)},
        {each.natural_key: each.outcome for each in events if isinstance(each, PairReconciled)},
        Counter(type_name(each) for each in events),
    )


def time_of(place: Path, *words: str) -> float:
    """Run a command in a folder to its end; return the seconds it takes, imports left out."""
    launch(place, "--version")  # imports are done once, before the first command
    began_at = time.monotonic()
    done = launch(place, *words)
    assert done.returncode == 0, done.stderr
    return time.monotonic() - began_at


def killed(place: Path, *words: str, n_kills: int, longest_s: float) -> int:
    """Run a command in a folder, killed so often, then to its end; return the kills that hit."""
    rng = random.Random(20260425)  # noqa: S311  # moments, not secrets
    moments = [rng.uniform(0, longest_s) for _ in range(n_kills)]
    n_hit = sum(is_hit(place, words, delay_s) for delay_s in moments)
    done = launch(place, *words)
    assert done.returncode == 0, done.stderr
    return n_hit


def is_hit(place: Path, words: tuple[str, ...], delay_s: float) -> bool:
    """Kill a run after a delay; say whether that was before its end."""
    run = begin(place, words, os.environ)
    time.sleep(delay_s)
    ended = run.kill()
    assert ended.code in {0, -signal.SIGKILL}, ended.err
    return ended.code != 0


@pytest.fixture
def undisturbed(place: Path, tmp_path: Path) -> Path:
    """Give a second folder, the same, whose run nobody disturbs."""
    settings = place / "tournament.toml"
    text = settings.read_text(encoding="utf-8")
    small_batches = text.replace("batch_tokens = 2048", "batch_tokens = 800")
    assert small_batches != text
    settings.write_text(small_batches, encoding="utf-8")
    return shutil.copytree(place, tmp_path / "undisturbed")


def test_killed_twenty_times_a_run_ends_as_if_undisturbed(place: Path, undisturbed: Path) -> None:
    """Same responses, verdicts and outcomes; nothing twice; the chain intact."""
    assert launch(undisturbed, "run").returncode == 0

    n_generate = killed(place, "apply", "generate", n_kills=14, longest_s=0.9)
    n_judge = killed(place, "apply", "judge", n_kills=30, longest_s=0.08)

    found, expected = held_by(place / "tournament.db"), held_by(undisturbed / "tournament.db")
    assert n_generate >= 10
    assert n_judge >= 10
    assert found.responses == expected.responses
    assert found.verdicts == expected.verdicts
    assert found.outcomes == expected.outcomes
    assert expected.n_by_type - found.n_by_type == Counter(RatingsPublished=1)
    assert not found.n_by_type - expected.n_by_type
