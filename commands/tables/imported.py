"""The adapters that an import wrote, as a table."""

from collections.abc import Sequence
from pathlib import Path

from commands.hydra_import import Imported
from commands.tables.table import Column, Table


def imported_table(out: Path, imported: Sequence[Imported]) -> Table:
    """Show what each adapter was made of."""
    return Table(
        schema="tourney/hydra-weights@1",
        title=f"Adapters in {out}",
        columns=(Column("adapter", "Adapter"), Column("rank", "Rank"), Column("source", "From")),
        rows=tuple(
            {"adapter": each.name, "rank": each.folder.rank, "source": str(each.source)}
            for each in imported
        ),
        facts={"folder": str(out)},
    )
