"""What keeping and sharing a ledger found, as tables."""

from commands.counted import counted
from commands.exchange import Taken
from commands.tables.table import Column, Table
from ledger.chain import Head


def checkpoint_table(head: Head) -> Table:
    """Show what names a history; the note is what is to be kept."""
    return Table(
        schema="tourney/checkpoint@1",
        title="Checkpoint",
        columns=(Column("position", "Position"), Column("chain", "Chain")),
        rows=(),
        notes=(str(head),),
        facts={"position": head.position, "chain": head.chain, "checkpoint": str(head)},
    )


def conflicts_table(taken: Taken) -> Table:
    """Show what of another ledger contradicts ours."""
    note = (
        f"{counted(taken.n_new, 'event')} taken in, {taken.n_known} here already,"
        f" {counted(len(taken.conflicts), 'conflict')},"
        f" {counted(taken.n_left, 'outcome')} of theirs left to be reconciled again"
    )
    if taken.n_unfounded:
        left = counted(taken.n_unfounded, "sample or completion", "samples and completions")
        note += f", {left} of theirs left that do not follow from what is here"
    return Table(
        schema="tourney/merge@1",
        title="Conflicts: ours were kept",
        columns=(
            Column("position", "Our position"),
            Column("their_position", "Their position"),
            Column("stream", "Tournament"),
            Column("type", "Event"),
            Column("key", "Of"),
        ),
        rows=tuple(
            {
                "position": conflict.position,
                "their_position": conflict.row.position,
                "stream": conflict.row.stream,
                "type": conflict.row.type,
                "key": " ".join(conflict.row.recorded().event.natural_key),
            }
            for conflict in taken.conflicts
        ),
        notes=(note,),
        facts={
            "n_new": taken.n_new,
            "n_known": taken.n_known,
            "n_left": taken.n_left,
            "n_unfounded": taken.n_unfounded,
        },
    )
