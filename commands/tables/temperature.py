"""The temperature by which a judge's marks tell best whom people preferred, as a table."""

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Final

from commands.tables.table import Column, Table
from ledger.identity import Json
from projections.battles.settled import Calibrated
from projections.battles.soft_scores import TEMPERATURE

_LEVEL: Final = 0.95
_METHOD: Final = (
    "By maximum likelihood of people's votes: each beside each answer of the judge on the same"
    " prompt and entrants. Ties of people are left out. Low and high: the sandwich clustered by"
    " prompts."
)


def temperature_table(
    calibrated: Iterable[Calibrated], *, notes: Iterable[str], facts: Mapping[str, Json]
) -> Table:
    """Show each temperature with its interval, beside how well the usual one does."""
    return Table(
        schema="tourney/temperature@1",
        title="Temperature of a judge's marks",
        columns=(
            Column("dimension", "Dimension"),
            Column("temperature", "Temperature", 3),
            Column("low", f"{100 * _LEVEL:g} % low", 3),
            Column("high", f"{100 * _LEVEL:g} % high", 3),
            Column("log_likelihood", "Log likelihood", 2),
            Column("log_likelihood_usual", f"At {TEMPERATURE:g}", 2),
            Column("n_prompts", "Prompts"),
            Column("n_pairs", "Pairs"),
            Column("n_ties", "Ties"),
        ),
        rows=tuple(map(_row, calibrated)),
        notes=(
            *notes,
            _METHOD,
        ),
        facts=dict(facts),
    )


def _row(calibrated: Calibrated) -> dict[str, Json]:
    found = calibrated.found
    low, high = found.interval(_LEVEL)
    return {
        "dimension": calibrated.name,
        "temperature": found.value,
        "low": low if isfinite(low) else None,
        "high": high if isfinite(high) else None,
        "log_likelihood": calibrated.log_likelihood,
        "log_likelihood_usual": calibrated.log_likelihood_usual,
        "n_prompts": found.n_prompts,
        "n_pairs": found.n_pairs,
        "n_ties": found.n_ties,
    }
