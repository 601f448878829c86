"""What a forecast of designs says of its evidence, and what it leaves out."""

from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path

import pytest

from commands.judging.designs import DesignGoal, forecast_designs
from commands.spending.pricing import price_book
from projections.results.ratings import DesignRow
from tests.support.builders.commands import settings
from tests.support.builders.events import entrant, judge, known, opened, prompt
from tests.support.builders.worlds import Fate, everything, history

N_PROMPTS = 24


def forecast(
    tmp_path: Path, *fates: Fate, loader: str = "hf"
) -> tuple[Sequence[DesignRow], Sequence[str]]:
    """Forecast designs of three entrants, whose pairs end so again and again."""
    opening = opened(
        prompts=[prompt(f"p{n}") for n in range(N_PROMPTS)],
        entrants=[entrant("zoe"), entrant("amy"), entrant("kim", loader=loader)],
    )
    state = known(*history(opening, *islice(cycle(fates), 3 * N_PROMPTS)))
    pricing = price_book(settings(), tmp_path).pricing(judge(), state)
    return forecast_designs(state, everything(state), judge(), pricing, 1, DesignGoal(30.0, None))


@pytest.mark.parametrize(("loader", "is_said"), [("endpoint", True), ("hf", False)])
def test_the_price_of_answers_is_said_to_be_left_out(
    tmp_path: Path, loader: str, is_said: bool
) -> None:
    """More prompts also cost answers of entrants on a server."""
    rows, notes = forecast(tmp_path, "a", "b", "tie", "b", "a", "a", "a", loader=loader)

    assert rows
    assert ("answers of the entrants are not counted" in notes) == is_said


def test_where_all_verdicts_are_ties_that_is_said(tmp_path: Path) -> None:
    """More prompts may be as equal: it is no lack of them."""
    rows, notes = forecast(tmp_path, "tie")

    assert not rows
    assert notes == [
        "factuality: no forecast: all verdicts agree: each is a tie, so no rating has an interval"
    ]
