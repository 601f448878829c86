"""What entrants did on evaluations, as it is recorded."""

import pytest

from ledger.events.evaluations import run_key
from ledger.identity import Digest
from tests.support.builders.events import key

SETTINGS = '{"kind":"rollout"}'


@pytest.mark.parametrize(
    ("entrant", "settings"),
    [(key("tuned"), SETTINGS), (key("base"), '{"kind":"perplexity"}')],
)
def test_whatever_determines_an_observation_makes_another_run(
    entrant: Digest, settings: str
) -> None:
    """What was observed under other circumstances must not be taken for this run's."""
    assert run_key(entrant, settings) != run_key(key("base"), SETTINGS)
