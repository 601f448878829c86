"""A result as rows, columns and notes, from which every output format is made."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from commands.errors import joined_names
from commands.runs.report.drawings.figures import ToChart
from ledger.events.registration import JudgeSettings
from ledger.identity import Json


def judged_by(judges: Sequence[JudgeSettings]) -> str:
    """Return the note that names the judge, or the judges whose majority counts."""
    names = ", ".join(each.judge_id for each in judges)
    return f"Judge: {names}" if len(judges) == 1 else f"Judges, by majority: {names}"


KEPT: Final = 3
"""The importance of a column that is never left out."""


@dataclass(frozen=True)
class Column:
    """A key of the rows, its heading, and the digits that a table shows; data keeps all."""

    key: str
    heading: str
    digits: int | None = None
    unknown: str = "\N{EN DASH}"  # shown in place of null
    is_signed: bool = False  # positive numbers have a plus
    is_counted: bool = False  # left out of a table if all are zero
    importance: int = 2  # where it is narrow, the least important are left out first
    group: str = ""  # columns of one group are left out together
    longest: int | None = None  # characters of a text that a table shows; None: all


class DrawnInterval(NamedTuple):
    """The columns of a value and its bounds, which are drawn as a bar."""

    low: str
    value: str
    high: str


def columns(
    *keys: str,
    digits: int | None = None,
    unknown: str = Column.unknown,
    importance: int = Column.importance,
    is_counted: bool = Column.is_counted,
    group: str = Column.group,
    **headings: str,
) -> tuple[Column, ...]:
    """Return columns of one kind: first those without a heading, `n_left_out` as "Left out"."""
    plain = {key: key.removeprefix("n_").replace("_", " ").capitalize() for key in keys}
    return tuple(
        Column(
            key,
            heading,
            digits,
            unknown,
            is_counted=is_counted,
            importance=importance,
            group=group,
        )
        for key, heading in (plain | headings).items()
    )


@dataclass(frozen=True)
class Table:
    """Rows under columns, with notes and further facts."""

    schema: str  # as "tourney/elo@1"
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, Json], ...]
    notes: tuple[str, ...] = ()
    facts: dict[str, Json] = field(default_factory=dict)  # beside the rows in JSON
    named_by: tuple[str, ...] = ()  # columns that identify a row
    compared: tuple[str, ...] = ()  # columns whose change --diff shows
    interval: DrawnInterval | None = None  # drawn where there is room
    chart: ToChart | None = None  # its rows as a figure; None: there is none
    beside: tuple[str, ...] = ()  # columns shown then and now, without a change
    zeros: Mapping[str, Mapping[tuple[Json, ...], Hashable]] = field(default_factory=dict)
    """By compared column and row: the reference of its numbers, without which none subtract."""


def difference_table(then: Table, now: Table) -> Table:
    """Return rows as they were and as they are; new rows and removed ones are marked.

    Both tables are the same view, of an earlier and a later position.
    """
    held = {column.key: column for column in (*then.columns, *now.columns)}
    rows, since = tuple(_rows(then, now)), then.facts["as_of"]
    return Table(
        schema=now.schema.replace("@", "-diff@"),
        title=f"{now.title}: since position {since}",
        columns=(
            *(held[key] for key in now.named_by),
            *(each for key in now.beside if key in held for each in _both(held[key])),
            *(each for key in now.compared for each in _three(held[key])),
            *([Column("mark", "Row", unknown="")] if any(row["mark"] for row in rows) else ()),
        ),
        rows=rows,
        notes=(*now.notes, *_notes(then, now), *_moved_notes(now, rows)),
        facts={**now.facts, "since": since},
        named_by=now.named_by,
    )


def _both(column: Column) -> Iterator[Column]:
    for when in ("then", "now"):
        yield Column(f"{column.key}_{when}", f"{column.heading} {when}", column.digits)


def _three(column: Column) -> Iterator[Column]:
    yield from _both(column)
    yield Column(f"{column.key}_change", "Change", column.digits, is_signed=True)


def _rows(then: Table, now: Table) -> Iterator[Mapping[str, Json]]:
    before, after = (
        {tuple(row[key] for key in now.named_by): row for row in table.rows}
        for table in (then, now)
    )
    for name in dict.fromkeys((*after, *before)):
        old, new = before.get(name, {}), after.get(name, {})
        mark = "new" if name not in before else "gone" if name not in after else None
        numbers: dict[str, Json] = {}
        for key in now.beside:
            numbers |= {f"{key}_then": old.get(key), f"{key}_now": new.get(key)}
        for key in now.compared:
            zeros = (table.zeros.get(key, {}).get(name) for table in (then, now))
            is_moved = len({*zeros}) > 1
            numbers |= _change(key, old.get(key), new.get(key), is_moved=is_moved)
        yield {**dict(zip(now.named_by, name, strict=True)), **numbers, "mark": mark}


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
                *place, last = (str(row[part]) for part in now.named_by)
                moved.setdefault(": ".join(place), []).append(last)
        for where, names in moved.items():
            have = "has" if len(names) == 1 else "have"
            yield (
                f"{where}: {joined_names(names)} {have} no change of {key}: the zero point (the"
                " anchor, or the mean of the group) was different then."
            )
