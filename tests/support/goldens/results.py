"""Every result of one tournament, as a pipe gets it, and the names that its data has.

`python -m tests.support.goldens.results` writes them into tests/golden/results, after a change that
is meant to be seen; the difference is then reviewed like code.
"""

import json
import re
from collections.abc import Mapping
from datetime import timedelta
from html import unescape
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Final

from ledger.store import Ledger
from tests.support.builders.events import NOON, STREAM
from tests.support.builders.results import evaluated, judged, trained
from tests.support.command_line.launching import launch

FOLDER: Final = Path(__file__).parents[2] / "golden" / "results"
RESULTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "elo": "project elo --k 8,32",
        "bt": "project bt",
        "bt_pairs": "project bt --pairs",
        "winrates": "project winrates",
        "matches": "project matches --where prompt=p1",
        "responses": "project responses",
        "progress": f"status --tournament {STREAM}",
        "agreement": "project agreement",
        "fragility": "project fragility",
        "bias": "project bias",
        "spend": "project spend",
        "metrics": "project metrics",
        "samples": "project metrics --samples all",
        "curve": "project metrics --curve",
    }
)
"""The command of each result."""


def lay_out(folder: Path) -> Path:
    """Record the tournament in a folder."""
    hours = (NOON + timedelta(hours=n) for n in count())
    with Ledger.open(folder / "tournament.db", lambda: next(hours)) as ledger:
        for events in (judged(), evaluated(), trained()):
            ledger.append(STREAM, events)
    return folder


def shown(folder: Path, name: str) -> str:
    """Return a result as it is printed, and the names of its columns and of its fields."""
    words = RESULTS[name].split()
    table, csv, data = (
        launch(folder, *words, "--format", each).stdout for each in ("table", "csv", "json")
    )
    fields = [*json.loads(data)["rows"][0]]
    columns = csv.partition("\n")[0].split(",")
    return f"{table}\nColumns: {', '.join(columns)}\nFields: {', '.join(fields)}\n"


def report(folder: Path) -> str:
    """Return the text of the report without battles: a line for each row, with its colours."""
    source = launch(folder, "report", "-o", "-", "--battles", "none").stdout
    body = " ".join(re.sub(r"<(style|script)>.*?</\1>", "", source, flags=re.DOTALL).split())
    told = re.sub(r'<td class="(h-?\d)">', r" [\1] ", body)
    told = re.sub(r"<(tr|h\d|p|li|caption|summary|dt|header|pre|nav)\b[^>]*>", "\n", told)
    lines = unescape(re.sub(r"<[^>]*>", " ", told)).splitlines()
    return "".join(f"{' '.join(line.split())}\n" for line in lines if line.split())


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    with TemporaryDirectory() as place:
        laid_out = lay_out(Path(place))
        for result in RESULTS:
            (FOLDER / f"{result}.txt").write_text(shown(laid_out, result), encoding="utf-8")
        (FOLDER / "report.txt").write_text(report(laid_out), encoding="utf-8")
