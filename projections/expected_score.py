"""The expected score of Elo, the same bits on every processor.

NumPy's own powers and exponentials take another path where the processor has wider registers, and
differ in the last bit; a replay elsewhere would then look like a forgery. Here are operations only
that IEEE 754 rounds exactly (+, -, x, /), and whole numbers.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

LOG2_10: Final = 3.321928094887362
_LN_2: Final = 0.6931471805599453

# What stands in the fraction below from 1 to 9, so scaled that f can stand for x.
_TERMS: Final = tuple(np.array(odd * 2.0 / _LN_2) for odd in (1, 3, 5, 7))
_LAST: Final = np.array(_LN_2 / 18.0)

# A number below 2^51 added to this loses its fraction, and stands in the lowest bits of the sum.
_ROUNDER: Final = np.array(1.5 * 2.0**52)
_EXPONENT: Final = np.array(52, dtype=np.uint64)  # the bit at which a float64 keeps its exponent

WIDEST: Final = 1000.0  # doublings: further apart, the exponent of a float64 would run over


class ExpectedScore:
    """Work space for the expected scores of so many games at once."""

    def __init__(self, n: int) -> None:
        self._whole, self._square, self._curve = np.empty((3, n))
        self._shift = self._whole.view(np.uint64)
        self._above = self._square  # which is done with by then
        self._above_bits = self._above.view(np.uint64)

    def __call__(self, gap: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return 1 / (1 + 2^gap), to 1e-15.

        2^gap = 2^n 2^f with n whole and |f| <= 1/2; with x = f ln(2) / 2 and C = x / tanh(x),
        2^f = (C + x) / (C - x). Cut off after its fifth term, the continued fraction
        C = 1 + x^2 / (3 + x^2 / (5 + x^2 / (7 + ...))) (Lambert 1768) is right to 1e-15 there.

        Args:
            gap: (n,) by how many doublings of the odds the opponent is better, at most WIDEST;
                overwritten.

        Returns:
            (n,) in [0, 1], overwritten by the next call.
        """
        whole, square, curve = self._whole, self._square, self._curve
        first, second, third, fourth = _TERMS
        np.add(gap, _ROUNDER, whole)
        np.subtract(whole, _ROUNDER, square)
        f = np.subtract(gap, square, gap)
        np.left_shift(self._shift, _EXPONENT, self._shift)
        np.multiply(f, f, square)
        np.multiply(square, _LAST, curve)
        np.add(curve, fourth, curve)
        for term in (third, second, first):
            np.divide(square, curve, curve)
            np.add(curve, term, curve)
        above = np.add(curve, f, self._above)
        below = np.subtract(curve, f, curve)
        np.add(self._above_bits, self._shift, self._above_bits)  # times 2^n
        np.add(above, below, above)
        return np.divide(below, above, below)
