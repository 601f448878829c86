"""The table of benchmarks, in Markdown."""

from collections.abc import Iterable, Mapping

from tests.benchmarks.row import Row


def table(rows: Iterable[Row], facts: Mapping[str, str]) -> str:
    """Return the whole file: what it is, what was measured on, and the rows."""
    return "\n".join(
        (
            "# Benchmarks",
            "",
            "Made by `make bench`. What is compared was measured in turn; medians over the rounds.",
            "F is the flush rate: 1 / the median time of appending 4 KiB and `fdatasync`.",
            "",
            *(f"- {name}: {value}" for name, value in facts.items()),
            "",
            _line(name.replace("_", " ") for name in Row._fields),
            _line("---" for _ in Row._fields),
            *map(_line, rows),
            "",
        )
    )


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
