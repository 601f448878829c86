"""A tournament whose entrants and judge a fake server answers for, called from the command line."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.providers.openai import FakeOpenAI, Json
from tests.support.builders.commands import write_bank
from tests.support.command_line import paid
from tests.support.command_line.warm import Ended

JUDGE: Final = "judge-70b"
_RUBRIC: Final = "<!-- version: 1 -->\n+++\nneeds_gold = false\n+++\n\nSay which has more {}.\n"
_PRICES: Final = f"""\
date = 2026-11-22
batch_factor = 0.5
cache_write_5m_factor = 1.25
cache_write_1h_factor = 2.0

[[models]]
id = "{JUDGE}"
input = 0.60
output = 1.80
"""


class Served:
    """A tournament on "Question 0?", "Question 1?" ..., and what its server was asked."""

    def __init__(
        self,
        folder: Path,
        server: FakeOpenAI,
        *,
        n_prompts: int,
        dimensions: Sequence[str] = ("quality",),
    ) -> None:
        """Write the files but for the settings."""
        self.folder, self.server, self._dimensions = folder, server, dimensions
        server.traffic.models = None
        prompts = ({"prompt_id": f"p{n}", "text": f"Question {n}?"} for n in range(n_prompts))
        write_bank(folder / "bank.jsonl", prompts)
        for name in dimensions:
            (folder / f"{name}.md").write_text(_RUBRIC.format(name))
        (folder / "prices.toml").write_text(_PRICES)

    def at(self, model: str) -> str:
        """Return the keys of who is a model of the server's."""
        return f'model = "{model}"\nbase_url = "{self.server.url}"\n'

    def configure(
        self, entrants: Mapping[str, str], *, further: str = "", judge: str = "", jury: str = ""
    ) -> None:
        """Write the settings.

        Args:
            entrants: The keys of each entrant's table, by its id.
            further: Tables that stand before those of the entrants.
            judge: Further keys of the judge's table.
            jury: What stands behind it.
        """
        tables = [
            f'[tournament]\nid = "served"\n\n{further}\n',
            *(f'[[entrants]]\nid = "{name}"\n{keys}' for name, keys in entrants.items()),
            *(f'[[rubrics]]\ndimension = "{d}"\npath = "{d}.md"\n' for d in self._dimensions),
            f'[judge]\nprovider = "endpoint"\n{self.at(JUDGE)}{judge}\n{jury}',
        ]
        (self.folder / "tournament.toml").write_text("\n".join(tables))

    def tourney(self, *words: str) -> Ended:
        """Run a command."""
        return paid.tourney(self.folder, *words, url=self.server.url)

    def rows(self, *words: str) -> list[dict[str, Any]]:
        """Return the rows that a command prints, which succeeds."""
        done = self.tourney(*words, "--json")
        assert done.code == 0, done.err
        rows: list[dict[str, Any]] = json.loads(done.out)["rows"]
        return rows

    def asked(self, model: str = JUDGE) -> list[Json]:
        """Return the requests to a model."""
        return [body for body in self.server.traffic.asked if body["model"] == model]
