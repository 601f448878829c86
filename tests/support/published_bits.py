"""Numbers as they are published, to the last bit: `python -m tests.support.published_bits`."""

import sys
from collections.abc import Iterator

import numpy as np

from ledger.events.ratings import EloParameters
from projections.intervals import RatioTerms, Scale, estimate_ratio
from projections.ratings.elo.rate import rate
from projections.ratings.elo.uncertainty import bootstrap, uncertainty
from tests.support.builders.battles import Battle, in_columns

_SCALES: tuple[Scale, ...] = ("share", "plain", "exponential")


def published() -> Iterator[str]:
    """Yield sixty intervals, the traces of Elo, and the errors that it computes and resamples."""
    rng = np.random.default_rng(1)
    for scale in _SCALES:
        for _ in range(20):
            terms = RatioTerms(rng.random(90), np.ones(90))
            yield str(estimate_ratio(terms, [*range(30)] * 3, scale))
    scores = [(n * 7 % 3) / 2 for n in range(400)]
    battles = in_columns(
        Battle(f"e{n % 5}", f"e{n % 7 + 5}", score, n // 4) for n, score in enumerate(scores)
    )
    elo = EloParameters(permutations=20, bootstraps=20)
    rated = rate(battles, elo, [elo.k, 32.0])
    computed = uncertainty(battles, rated[elo.k], elo, most_resampled=0)
    resampled = bootstrap(battles, elo, k=32.0)
    assert computed is not None
    assert resampled is not None
    yield rated[32.0].traces.tobytes().hex()
    yield computed.standard_error.tobytes().hex()
    yield resampled.standard_error.tobytes().hex()


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in published())
