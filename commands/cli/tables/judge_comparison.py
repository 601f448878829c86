"""Two judges on the same battles, as tables: shifts of ratings, pairs, or the battles."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from commands.cli.tables.table import Table, table_of
from commands.errors import counted, joined_names
from ledger.identity import Json
from projections.ratings.judge_comparison import AgreementWithPeople, JudgeComparison
from projections.results.columns import RowType
from projections.results.judges import ChangedBattleRow, JudgeFlipRow, JudgeShiftRow

ComparisonTable: TypeAlias = Literal["shifts", "pairs", "battles"]
People: TypeAlias = Mapping[str, AgreementWithPeople | None]
"""By dimension."""

_SHIFT: Final = (
    "Shift: of the Bradley-Terry rating, on the battles that both judges judged. Interval: 95 %,"
    " each prompt left out of both fits at once. Comparable: each interval lies within the margin."
)
_DIFFER: Final = "Differ: the two outcomes are not the same; opposite: they name opposite winners."


def comparison_table(
    judges: tuple[str, str],
    comparisons: Sequence[JudgeComparison],
    people: People,
    *,
    kind: ComparisonTable,
    notes: Iterable[str] = (),
) -> Table:
    """Return the shift of each entrant, or the flips of each pair, or what flipped.

    Args:
        judges: The names of A and B.
        comparisons: By dimension.
        people: How far each judge agrees with them.
        kind: What to show.
        notes: Further notes.
    """
    rows: Mapping[str, Sequence[NamedTuple]] = {
        "shifts": [row for each in comparisons for row in each.shifts],
        "pairs": [row for each in comparisons for row in each.flips],
        "battles": [row for each in comparisons for row in each.changed],
    }
    kinds: Mapping[str, tuple[RowType, str]] = {
        "shifts": (JudgeShiftRow, _SHIFT),
        "pairs": (JudgeFlipRow, _DIFFER),
        "battles": (ChangedBattleRow, "Read one with `tourney battle ID`."),
    }
    (row_kind, meaning), (a, b) = kinds[kind], judges
    return table_of(
        row_kind,
        rows[kind],
        f"tourney/compare-judges-{kind}@1",
        "Two judges on the same battles",
        notes=(
            f"A: {a}. B: {b}.",
            meaning,
            *_without_shift(comparisons, kind),
            *notes,
            *(said for each in comparisons for said in _said(each, people)),
        ),
        facts={
            "judge_a": a,
            "judge_b": b,
            "comparisons": [_data(each, people[each.dimension]) for each in comparisons],
        },
    )


def _without_shift(comparisons: Iterable[JudgeComparison], kind: ComparisonTable) -> Iterator[str]:
    for each in comparisons:
        for row in each.shifts if kind == "shifts" else ():
            if row.reason is not None:
                yield f"{each.dimension}: {row.entrant}: {row.reason}."


def _said(comparison: JudgeComparison, people: People) -> Iterator[str]:
    """Yield how often both differ, whom people agree with, and the verdict."""
    n_changed = len(comparison.changed)
    n_opposite = sum(row.n_opposite for row in comparison.flips)
    n_read = sum(row.n for row in comparison.flips)
    read = counted(n_read, "battle")
    if n_read < comparison.n_battles:  # identical responses tie for every judge
        read += " of different responses"
    yield (
        f"{comparison.dimension}: they differ on {n_changed:,} of {read},"
        f" {n_opposite:,} with opposite winners (--pairs, --battles)."
    )
    if (agreed := people[comparison.dimension]) is not None:
        bounds = ""
        if agreed.low is not None and agreed.high is not None:
            bounds = f" [{agreed.low:+.1%}, {agreed.high:+.1%}]"
        yield (
            f"{comparison.dimension}: of {counted(agreed.n_votes, 'vote')}, A agrees with"
            f" {agreed.by_a:.1%} and B with {agreed.by_b:.1%}: {agreed.gain:+.1%}{bounds}."
        )
    yield f"{comparison.dimension}: {_verdict(comparison)}"


def _verdict(comparison: JudgeComparison) -> str:
    margin = f"{comparison.margin:g} points"
    if comparison.verdict == "comparable":
        return f"comparable: no rating moves by more than {margin}."
    if comparison.verdict == "not comparable":
        moved = [
            row.entrant
            for row in comparison.shifts
            if row.shift is not None and abs(row.shift) > comparison.margin
        ]
        have = "has a rating that moves" if len(moved) == 1 else "have ratings that move"
        return f"not comparable: {joined_names(moved)} {have} by more than {margin}."
    n = f"{counted(comparison.n_battles, 'battle')} on {counted(comparison.n_prompts, 'prompt')}"
    needed = comparison.n_prompts_needed
    more = f"; about {needed:,} prompts would do, if shifts stay as they are" if needed else ""
    return f"not enough battles to say whether ratings are comparable within {margin}: {n}{more}."


def _data(comparison: JudgeComparison, agreed: AgreementWithPeople | None) -> Json:
    return {
        "dimension": comparison.dimension,
        "verdict": comparison.verdict,
        "margin": comparison.margin,
        "n_battles": comparison.n_battles,
        "n_prompts": comparison.n_prompts,
        "n_prompts_needed": comparison.n_prompts_needed,
        "n_changed": len(comparison.changed),
        "n_opposite": sum(row.n_opposite for row in comparison.flips),
        "people": None if agreed is None else {**agreed._asdict(), "gain": agreed.gain},
    }
