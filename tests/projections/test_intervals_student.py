"""Student's t: tail probabilities and critical values are those of printed tables."""

import numpy as np
import pytest

from projections.intervals import critical_value, portable_critical_value, two_sided_p


@pytest.mark.parametrize(
    ("level", "freedom", "t"),
    [
        (0.95, 1, 12.7062),
        (0.95, 4, 2.7764),
        (0.95, 30, 2.0423),
        (0.99, 10, 3.1693),
        (0.999, 2, 31.599),
        (0.95, 1e12, 1.9602),
    ],
)
def test_critical_values_are_those_of_the_table(level: float, freedom: float, t: float) -> None:
    """Fisher and Yates, table III; many degrees of freedom are those of 10,000."""
    assert critical_value(level, np.array([freedom]))[0] == pytest.approx(t, rel=2e-5)


def test_what_is_published_has_six_decimals() -> None:
    """Whose last bit no processor can change."""
    freedom = np.arange(1.0, 200.0)

    found = portable_critical_value(0.95, freedom)

    exact = critical_value(0.95, freedom)
    assert found.tolist() == [float(f"{each:.6f}") for each in exact.tolist()]


def test_degrees_of_freedom_are_rounded_down_to_one_at_least() -> None:
    """A tenth of a degree is no licence for a narrower interval, and none at all is one."""
    found = critical_value(0.95, np.array([[4.9, 4.0], [0.3, 1.0], [np.nan, 7.0]]))

    assert found[0, 0] == found[0, 1]
    assert found[1, 0] == found[1, 1]
    assert np.isnan(found[2, 0])


def test_the_last_bit_of_a_whole_number_decides_nothing() -> None:
    """Balanced tournaments have whole degrees of freedom, but for a bit that is the processor's."""
    below, whole, above = critical_value(
        0.95, np.array([np.nextafter(5, 0), 5, np.nextafter(5, 6)])
    )

    assert below == whole == above


@pytest.mark.parametrize("t", [0.0, 0.5, 1.0, 3.0, 60.0])
def test_the_tail_of_one_degree_is_cauchy_s(t: float) -> None:
    """1 - 2 arctan(t) / pi."""
    expected = 1 - 2 * np.arctan(t) / np.pi

    assert two_sided_p(np.array(t), np.array(1.0)) == pytest.approx(expected, rel=1e-9)


def test_what_is_unknown_has_no_chance() -> None:
    """A pair without an error has no t."""
    assert np.isnan(two_sided_p(np.array([np.nan]), np.array([3.0]))).all()
