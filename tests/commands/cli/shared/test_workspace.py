"""What is said when a tournament is opened to be worked on."""

from pathlib import Path
from typing import Final

import pytest

from commands.cli.shared.workspace import workspace
from tests.support.builders.commands import lay_out

SETTINGS: Final = """\
[tournament]
id = "main"
[[entrants]]
id = "base"
weights = "weights/base"
[[entrants]]
id = "other"
weights = "weights/{weights}"
[[rubrics]]
dimension = "factuality"
path = "rubrics/factuality.md"
"""


@pytest.mark.parametrize(("weights", "n_notes"), [("tuned", 0), ("base", 1)])
def test_entrants_that_are_alike_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], weights: str, n_notes: int
) -> None:
    """By `plan` and `run`, which both open the tournament here, before anything is generated."""
    config = lay_out(tmp_path) / "tournament.toml"
    config.write_text(SETTINGS.format(weights=weights))

    workspace(config, None)

    said = capsys.readouterr().err
    assert said.count("other has the same configuration as base, so it gets the same") == n_notes
