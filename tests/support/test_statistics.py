"""The test that sampling is tested by can itself fail, and by the right measure."""

import math

import pytest
import torch

from tests.support.statistics import chi_square_p


@pytest.mark.parametrize(
    ("statistic", "n_cells", "p"), [(3.841, 2, 0.05), (16.919, 10, 0.05), (24.322, 8, 0.001)]
)
def test_the_p_of_a_textbook_statistic(statistic: float, n_cells: int, p: float) -> None:
    """Quantiles from the table of any textbook, with one degree of freedom less than cells."""
    expected = torch.full((n_cells,), 1000.0)
    off = math.sqrt(statistic * 1000 / 2)
    observed = expected.clone()
    observed[0] += off
    observed[1] -= off

    assert math.isclose(chi_square_p(observed, expected), p, rel_tol=1e-2)


def test_what_cannot_happen_but_did_has_probability_zero() -> None:
    """One draw of a token that was ruled out refutes a sampler, among thousands of good ones."""
    assert chi_square_p(torch.tensor([5000, 4999, 1]), torch.tensor([5000.0, 5000.0, 0.0])) == 0


def test_rare_cells_are_judged_together() -> None:
    """One draw of a token in ten thousand is no wonder when a hundred tokens are as rare."""
    expected = torch.tensor([9000.0, 990.0, *[0.1] * 100])
    observed = torch.tensor([9000, 990, *[1] * 10, *[0] * 90])

    assert math.isclose(chi_square_p(observed, expected), 1.0)
