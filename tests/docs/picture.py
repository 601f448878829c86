"""docs/elo.svg, the picture of a result: each entrant's Elo with its 95 % interval."""

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, floor
from typing import Any, Final, TypeAlias

Row: TypeAlias = Mapping[str, Any]  # as `tourney project elo --json` has them

_WIDTH, _TOP, _STEP, _BOTTOM = 760, 56, 38, 44
_LEFT, _RIGHT = 230, 690  # of the scale
_TICK: Final = 100  # Elo points
_STYLE: Final = """\
text { font: 14px system-ui, sans-serif; fill: #1f2328; }
.title { font-weight: 600; font-size: 15px; }
.small { font-size: 12px; fill: #59636e; }
.grid { stroke: #d8dee4; }
.bound { stroke: #0969da; stroke-width: 2; }
circle { fill: #0969da; }"""


def picture(elo: Mapping[str, Any]) -> str:
    """Draw the rows of a table of Elo, which has one dimension."""
    rows: Sequence[Row] = elo["rows"]
    dimension = rows[0]["dimension"]
    n_prompts = elo["intervals"][dimension]["n_prompts"]
    height = _TOP + _STEP * len(rows) + _BOTTOM
    scale = _Scale(rows)
    title = f"{dimension}: Elo, K = {elo['parameters']['k']:g}, with 95 % interval"
    note = f"over {n_prompts} prompts, {elo['parameters']['permutations']} orders of play"
    parts = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect width="{_WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
        f'<text class="title" x="20" y="30">{escape(title)}</text>',
        f'<text class="small" x="{_RIGHT + 50}" y="30" text-anchor="end">{escape(note)}</text>',
        *(_tick(scale, tick, height - _BOTTOM) for tick in scale.ticks),
        *(_row(scale, row, _TOP + _STEP * n + _STEP // 2) for n, row in enumerate(rows)),
        "</svg>",
    )
    return "\n".join(parts) + "\n"


class _Scale:
    """Where Elo points stand on the picture."""

    def __init__(self, rows: Sequence[Row]) -> None:
        """Take in all intervals, to the next tick."""
        self._low = floor(min(row["ci95_low"] for row in rows) / _TICK) * _TICK
        self._high = ceil(max(row["ci95_high"] for row in rows) / _TICK) * _TICK

    @property
    def ticks(self) -> range:
        """The marks on the scale."""
        return range(self._low, self._high + 1, _TICK)

    def x(self, rating: float) -> str:
        """Return where a rating stands."""
        share = (rating - self._low) / (self._high - self._low)
        return f"{_LEFT + share * (_RIGHT - _LEFT):.1f}"


def _tick(scale: _Scale, tick: int, bottom: int) -> str:
    x = scale.x(tick)
    return (
        f'<line class="grid" x1="{x}" x2="{x}" y1="{_TOP}" y2="{bottom}"/>'
        f'<text class="small" x="{x}" y="{bottom + 20}" text-anchor="middle">{tick}</text>'
    )


def _row(scale: _Scale, row: Row, y: int) -> str:
    low, mean, high = (scale.x(row[name]) for name in ("ci95_low", "rating", "ci95_high"))
    return (
        f'<text x="20" y="{y + 5}">{escape(row["entrant"])}</text>'
        f'<line class="bound" x1="{low}" x2="{high}" y1="{y}" y2="{y}"/>'
        f'<circle cx="{mean}" cy="{y}" r="5"/>'
        f'<text class="small" x="{_RIGHT + 50}" y="{y + 5}" text-anchor="end">'
        f"{row['rating']:.0f}</text>"
    )
