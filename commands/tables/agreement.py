"""What judges do and how they agree, one figure a line."""

from collections.abc import Iterable

from commands.tables.table import Column, Table
from projections.reliability.agreement import Measure


def agreement_table(measures: Iterable[Measure]) -> Table:
    """Show each figure with the judges it is about and the number of cases that it rests on."""
    return Table(
        schema="tourney/agreement@1",
        title="Judges, alone and beside one another",
        columns=(
            Column("dimension", "Dimension"),
            Column("judges", "Judges"),
            Column("measure", "Measure"),
            Column("value", "Value", 3),
            Column("n", "n"),
        ),
        rows=tuple(
            {
                "dimension": each.dimension,
                "judges": ", ".join(each.judges),
                "measure": each.name,
                "value": each.value,
                "n": each.n,
            }
            for each in measures
        ),
        notes=(
            (
                "n counts pairs for consistency and agreement (by concatenate their orders for"
                " agreement), verdicts A or B for the share of A, verdicts for ties, answered"
                " queries for failures, entrants for rank correlation."
            ),
            "A share of A far from 0.5 is a liking for the first slot, or for the second.",
        ),
    )
