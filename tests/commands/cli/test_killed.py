"""A process that is killed anywhere loses nothing recorded, and does nothing twice."""

import os
import random
import shutil
import signal
from collections import Counter
from collections.abc import Callable
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
from tests.support.death import Death


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


def kill(
    place: Path,
    *words: str,
    n_kills: int,
    furthest: int,
    after_each: Callable[[], None] = lambda: None,
) -> None:
    """Run a command in a folder so often, each time killed at a random step outside.

    Args:
        place: The folder.
        words: The command.
        n_kills: How often; no run may come to its end before.
        furthest: The last step that a kill may come at.
        after_each: What is done after each kill.
    """
    rng = random.Random(20260425)  # noqa: S311  # places, not secrets
    for _ in range(n_kills):
        death = Death(rng.randint(1, furthest))
        ended = begin(place, words, os.environ, death=death).wait()
        assert ended.code == -signal.SIGKILL, (death, ended)
        after_each()


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

    kill(place, "apply", "generate", n_kills=10, furthest=120)
    assert launch(place, "apply", "generate").returncode == 0
    kill(place, "apply", "judge", n_kills=10, furthest=100)
    assert launch(place, "apply", "judge").returncode == 0

    found, expected = held_by(place / "tournament.db"), held_by(undisturbed / "tournament.db")
    assert found.responses == expected.responses
    assert found.verdicts == expected.verdicts
    assert found.outcomes == expected.outcomes
    assert expected.n_by_type - found.n_by_type == Counter(RatingsPublished=1)
    assert not found.n_by_type - expected.n_by_type
