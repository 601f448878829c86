"""The style that a figure carries when it stands alone, in the colours of the report's page."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

_THEME: Final = re.compile(r":root \{(.*?)\}", re.DOTALL)
_COLOUR: Final = re.compile(r"--([\w-]+): ([^;]+);")
_USED: Final = re.compile(r"var\(--([\w-]+)\)")
_SHADES: Final = range(-5, 6)
_SHAPES: Final = """\
text { font: 13px Helvetica, Arial, sans-serif; font-variant-numeric: tabular-nums; }
.title { font-size: 16px; font-weight: 600; }
.head { font-weight: 600; }
.label { font-size: 12px; }
.range { stroke-width: 5; stroke-opacity: .45; }
.at { stroke-width: 9; stroke-linecap: round; }
.curve { fill: none; stroke-width: 1.5; }
.diagonal { stroke-dasharray: 3 3; }
"""
_COLOURS: Final = """\
.page { fill: var(--card); }
text { fill: var(--ink); }
.label { fill: var(--soft); }
.grid { stroke: var(--line); }
.tick, .diagonal { stroke: var(--soft); }
.range, .cap, .at, .curve { stroke: var(--accent); }
.dot { fill: var(--accent); }
""" + "".join(f".h{n} {{ fill: var(--h{n}); }}\n" for n in _SHADES)


@cache
def style_alone() -> str:
    """Return the style: light, and dark for who prefers that.

    Colours stand in it as they are, since programs that turn SVG into PDF know no variables.
    """
    page = files("commands.runs.report").joinpath("templates", "style.css").read_text("utf-8")
    light, dark, *_ = (dict(_COLOUR.findall(theme)) for theme in _THEME.findall(page))
    in_light, in_dark = _coloured(light), _coloured(light | dark)
    return f"{_SHAPES}{in_light}@media (prefers-color-scheme: dark) {{\n{in_dark}}}\n"


def _coloured(colours: Mapping[str, str]) -> str:
    return _USED.sub(lambda used: colours[used[1]], _COLOURS)
