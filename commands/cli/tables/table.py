"""A result as rows, columns and notes, from which every output format is made."""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

from commands.errors import joined_names
from ledger.events.registration import JudgeSettings
from ledger.identity import Json
from projections.results.columns import Column, RowType, columns_of, data_of


def judged_by(judges: Sequence[JudgeSettings]) -> str:
    """Return the note that names the judge, or the judges whose majority counts."""
    names = ", ".join(judge.judge_id for judge in judges)
    return f"Judge: {names}" if len(judges) == 1 else f"Judges, by majority: {names}"


class MoreColumn(NamedTuple):
    """A column whose name the options decide, as of a rating under another K, beside those of rows.

    In the data it stands behind them.
    """

    column: Column
    values: Sequence[Json]  # one for each row


@dataclass(frozen=True)
class Table:
    """Rows under columns, with notes and further facts."""

    schema: str  # as "tourney/elo@1"
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, Json], ...]
    notes: tuple[str, ...] = ()
    facts: dict[str, Json] = field(default_factory=dict)  # beside the rows in JSON
    kind: RowType | None = None  # whose rows these are; None: they are computed from others
    zeros: Mapping[str, Mapping[tuple[Json, ...], Hashable]] = field(default_factory=dict)
    """By compared column and row: the reference of its numbers, without which none subtract."""

    def keys(self, role: str) -> tuple[str, ...]:
        """Return the fields of a role, hidden ones included."""
        declared = columns_of(self.kind) if self.kind else self.columns
        return tuple(column.key for column in declared if column.role == role)


def table_of(
    kind: RowType,
    rows: Iterable[NamedTuple],
    schema: str,
    title: str,
    *,
    notes: Iterable[str] = (),
    facts: Mapping[str, Json] | None = None,
    more: Iterable[MoreColumn] = (),
    hidden: Collection[str] = (),
    without: Collection[str] = (),
    headings: Mapping[str, str] | None = None,
) -> Table:
    """Return rows as a table, whose columns are those that the kind of row declares.

    Args:
        kind: Of the rows, of which there may be none.
        rows: The result.
        schema: What JSON says it is.
        title: Above the table.
        notes: Below it.
        facts: Beside the rows in JSON.
        more: Further columns.
        hidden: Fields that only data has.
        without: Fields that data lacks, too.
        headings: Of columns whose meaning the options decide.
    """
    more, shown = tuple(more), {each.key: each for each in columns_of(kind)}
    for key, heading in (headings or {}).items():
        shown[key] = replace(shown[key], heading=heading)
    order = [*shown]
    for column, _ in more:
        shown[column.key] = column
        order.insert(order.index(column.after) + 1 if column.after else len(order), column.key)
    return Table(
        schema,
        title,
        tuple(shown[key] for key in order if key not in {*hidden, *without}),
        tuple(
            {key: value for key, value in data_of(row).items() if key not in without}
            | {column.key: values[number] for column, values in more}
            for number, row in enumerate(rows)
        ),
        tuple(notes),
        dict(facts or {}),
        kind,
    )


def difference_table(then: Table, now: Table) -> Table:
    """Return rows as they were and as they are; new rows and removed ones are marked.

    Both tables are the same view, of an earlier and a later position.
    """
    held = [*{column.key: column for column in (*then.columns, *now.columns)}.values()]
    rows, since = tuple(_rows(then, now)), then.facts["as_of"]
    names, beside, changing = (
        [column for column in held if column.role == role]
        for role in ("names", "is beside", "changes")
    )
    marks = [Column("Row", unknown="", key="mark")] if any(row["mark"] for row in rows) else []
    return Table(
        schema=now.schema.replace("@", "-diff@"),
        title=f"{now.title}: since position {since}",
        columns=(*names, *chain.from_iterable(map(_then_and_now, (*beside, *changing))), *marks),
        rows=rows,
        notes=(*now.notes, *_notes(then, now), *_moved_notes(now, rows)),
        facts={**now.facts, "since": since},
    )


def _then_and_now(column: Column) -> Iterator[Column]:
    """Yield the columns of what a number was and is, and of how it changed if it may."""
    for when in ("then", "now"):
        yield Column(f"{column.heading} {when}", column.digits, key=f"{column.key}_{when}")
    if column.role == "changes":
        yield Column("Change", column.digits, is_signed=True, key=f"{column.key}_change")


def _rows(then: Table, now: Table) -> Iterator[Mapping[str, Json]]:
    names = now.keys("names")
    before, after = (
        {tuple(row[key] for key in names): row for row in table.rows} for table in (then, now)
    )
    for name in dict.fromkeys((*after, *before)):
        old, new = before.get(name, {}), after.get(name, {})
        mark = "new" if name not in before else "gone" if name not in after else None
        numbers: dict[str, Json] = {}
        for key in now.keys("is beside"):
            numbers |= {f"{key}_then": old.get(key), f"{key}_now": new.get(key)}
        for key in now.keys("changes"):
            zeros = (table.zeros.get(key, {}).get(name) for table in (then, now))
            is_moved = len({*zeros}) > 1
            numbers |= _change(key, old.get(key), new.get(key), is_moved=is_moved)
        yield {**dict(zip(names, name, strict=True)), **numbers, "mark": mark}


def _change(key: str, then: Json, now: Json, *, is_moved: bool) -> dict[str, Json]:
    """Return both numbers, and their difference if they have the same reference."""
    is_known = isinstance(then, int | float) and isinstance(now, int | float) and not is_moved
    change = now - then if is_known else None  # type: ignore[operator]  # both are numbers
    return {f"{key}_then": then, f"{key}_now": now, f"{key}_change": change}


def _notes(then: Table, now: Table) -> Iterator[str]:
    before, after = then.facts.get("parameters"), now.facts.get("parameters")
    if isinstance(before, dict) and isinstance(after, dict):
        changed = [name for name in after if after[name] != before.get(name)]
        for name in changed:
            yield f"{name} was {before.get(name)!r} then: not every change comes from verdicts."


def _moved_notes(now: Table, rows: Iterable[Mapping[str, Json]]) -> Iterator[str]:
    """Yield notes on the rows whose numbers do not subtract."""
    for key in now.zeros:
        moved: dict[str, list[str]] = {}
        for row in rows:
            if row[f"{key}_change"] is None and None not in {row[f"{key}_then"], row[f"{key}_now"]}:
                *place, last = (str(row[part]) for part in now.keys("names"))
                moved.setdefault(": ".join(place), []).append(last)
        for where, names in moved.items():
            have = "has" if len(names) == 1 else "have"
            yield (
                f"{where}: {joined_names(names)} {have} no change of {key}: the zero point (the"
                " anchor, or the mean of the group) was different then."
            )
