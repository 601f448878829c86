"""Runs of the first edition fold to the bytes that were published."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.events.ratings import EloParameters, RatingsPublished
from ledger.exchange import read_export
from ledger.identity import digest_of_bytes
from ledger.recorded import Recorded
from projections import elo
from projections.artifacts import first_edition
from projections.artifacts.files import files_of
from projections.artifacts.results import results_of
from projections.battles import Battle, battles_of
from projections.fold import fold
from projections.tournament import tournament_of
from tests.builders import STREAM
from tests.projections.battle_strategies import comparable
from tests.projections.strategies import QUICK, elo_parameters

# Exported by the last tourney that knew of no other: it cannot be made again.
EXPORT = Path(__file__).parents[2] / "golden" / "ledgers" / "edition_1.jsonl"


@pytest.fixture(scope="module")
def history() -> list[Recorded]:
    """Give a tournament with ties, gaps and two publications."""
    with EXPORT.open("rb") as lines:
        return [row.recorded() for row in read_export(lines)]


@pytest.mark.parametrize("number", [0, 1], ids=["ties dropped", "ties as half"])
def test_a_published_run_folds_to_its_bytes(history: list[Recorded], number: int) -> None:
    """A claim that fails to replay after an upgrade looks like a forgery."""
    claims = [each.event for each in history if isinstance(each.event, RatingsPublished)]
    claim = claims[number]
    before = history[: claim.publication.as_of]

    files = files_of(results_of(fold(tournament_of(STREAM), before), claim.publication))

    assert claim.publication.terms.edition == 1
    assert {path: digest_of_bytes(content) for path, content in files.items()} == {
        artifact.path: artifact.digest for artifact in claim.artifacts
    }


@QUICK
@given(rows=comparable(), parameters=elo_parameters())
def test_editions_agree_but_for_the_last_bits(
    rows: list[Battle], parameters: EloParameters
) -> None:
    """Nobody's rating was wrong before: only its rounding was another."""
    battles = battles_of(row._replace(weight=1.0) for row in rows)

    first = first_edition.rate(battles, parameters, [1.0, 16.0])
    second = elo.rate(battles, parameters, [1.0, 16.0])

    for k, ratings in first.items():
        assert ratings.entrants == second[k].entrants
        assert ratings.traces == pytest.approx(second[k].traces, abs=1e-9)


@given(exponent=st.floats(min_value=-10, max_value=10))
def test_the_power_of_ten_is_right_to_a_part_in_ten_to_the_fourteen(exponent: float) -> None:
    """It stands in for NumPy's, so it must be as good."""
    (power,) = first_edition._power_of_ten(np.array([exponent]))

    assert power == pytest.approx(10.0**exponent, rel=1e-14)
