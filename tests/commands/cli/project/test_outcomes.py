"""Which matches `project matches` lists."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from commands.cli.project.outcomes import chosen_matches
from commands.errors import ConfigurationError
from commands.reading.judged_tournament import JudgedTournament
from tests.support.builders.events import known
from tests.support.builders.worlds import Fate, cup, history

FATES: tuple[Fate, ...] = ("a", "tie", "inconsistent", "refused", "b", "pending")


def listed(filters: Mapping[str, Any]) -> list[int]:
    """Return the places in the match list of those that are listed, of two prompts of a cup."""
    state = known(*history(cup(), *FATES))
    source = JudgedTournament(state, state.panel[0], Path(), None)
    (every,) = source.settlements.values()
    return [every.index(each) for each in chosen_matches(every, **filters)]


@pytest.mark.parametrize(
    ("filters", "places"),
    [
        ({}, [0, 1, 2, 3, 4, 5]),
        ({"prompt": "p2"}, [3, 4, 5]),
        ({"entrants": ["kim"]}, [1, 2, 4, 5]),
        ({"entrants": ["kim", "zoe"]}, [1, 4]),
        ({"outcome": "decided"}, [0, 4]),
        ({"outcome": "failed"}, [3]),
        ({"outcome": "tie", "entrants": ["amy"]}, []),
    ],
)
def test_a_filter_leaves_what_it_names(filters: Mapping[str, Any], places: list[int]) -> None:
    """Of 100,000 battles nobody reads more than a few."""
    assert listed(filters) == places


@pytest.mark.parametrize(
    ("filters", "why"),
    [
        ({"prompt": "p3"}, "--prompt 'p3' is not known; did you mean"),
        ({"entrants": ["kin"]}, "--entrant 'kin' is not known; did you mean 'kim'"),
    ],
)
def test_a_misspelt_filter_is_an_error(filters: Mapping[str, Any], why: str) -> None:
    """An empty list would look like an answer."""
    with pytest.raises(ConfigurationError, match=why):
        listed(filters)
