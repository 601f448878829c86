"""Several responses to each prompt: each is asked once, and intervals count them as one prompt."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.providers.openai import FakeOpenAI, Json, Said
from tests.support.builders.commands import write_bank
from tests.support.command_line import paid
from tests.support.command_line.warm import Ended

N_PROMPTS: Final = 6
RUBRIC: Final = "<!-- version: 1 -->\n+++\nneeds_gold = false\n+++\n\nSay which is better.\n"
SETTINGS: Final = """\
[tournament]
id = "sampled"

[generation]
samples = {samples}

[[entrants]]
id = "small"
model = "small-3b"
base_url = "{url}"
{temperature}

[[entrants]]
id = "large"
model = "large-32b"
base_url = "{url}"
temperature = 0.7

[[rubrics]]
dimension = "quality"
path = "quality.md"

[judge]
provider = "endpoint"
model = "judge-70b"
base_url = "{url}"
"""


class Sampled:
    """A tournament of two entrants behind a server, and what they were asked."""

    def __init__(self, folder: Path, server: FakeOpenAI) -> None:
        self.folder = folder
        self.server = server

    def tourney(
        self, *words: str, samples: int = 3, temperature: str = "temperature = 1.0"
    ) -> Ended:
        """Run a command with so many samples."""
        settings = SETTINGS.format(samples=samples, url=self.server.url, temperature=temperature)
        (self.folder / "tournament.toml").write_text(settings)
        return paid.tourney(self.folder, *words, url=self.server.url)

    @property
    def asked(self) -> list[Json]:
        """The requests to entrants."""
        return [body for body in self.server.traffic.asked if body["model"] != "judge-70b"]

    @property
    def n_judged(self) -> int:
        """How many queries the judge got."""
        return len(self.server.traffic.asked) - len(self.asked)


def _say(body: Json) -> Said:
    if body["model"] == "judge-70b":
        text = str(body["messages"])
        is_first = text.index("large-32b says") < text.index("small-3b says")
        return Said(f"VERDICT: {'A' if is_first else 'B'}")
    return Said(f"{body['model']} says {body['seed']}.")


@pytest.fixture
def sampled(tmp_path: Path) -> Iterator[Sampled]:
    """Give a tournament on a few prompts."""
    prompts = ({"prompt_id": f"p{n}", "text": f"Question {n}?"} for n in range(N_PROMPTS))
    write_bank(tmp_path / "bank.jsonl", prompts)
    (tmp_path / "quality.md").write_text(RUBRIC)
    with FakeOpenAI(_say) as server:
        server.traffic.models = None
        yield Sampled(tmp_path, server)


def test_further_samples_owe_only_themselves(sampled: Sampled) -> None:
    """Each sample has a seed of its own, and sample i meets sample i."""
    assert sampled.tourney("run", "--yes", samples=1).code == 0
    assert (len(sampled.asked), sampled.n_judged) == (2 * N_PROMPTS, 2 * N_PROMPTS)

    done = sampled.tourney("run", "--yes", samples=3)
    assert done.code == 0, done.err
    assert (len(sampled.asked), sampled.n_judged) == (6 * N_PROMPTS, 6 * N_PROMPTS)
    seeds = {(body["model"], str(body["messages"]), body["seed"]) for body in sampled.asked}
    assert len(seeds) == 6 * N_PROMPTS

    rows = json.loads(sampled.tourney("project", "matches", "--json").out)["rows"]
    assert len(rows) == 3 * N_PROMPTS
    assert {row["prompt"] for row in rows} >= {"p0", "p0#2", "p0#3"}
    rated = json.loads(sampled.tourney("project", "elo", "--json").out)
    assert rated["intervals"]["quality"]["n_prompts"] == N_PROMPTS
    report = sampled.tourney("report", "--format", "md").out
    assert f"{N_PROMPTS} of {N_PROMPTS} prompts judged" in report
    forecast = sampled.tourney("plan", "judge", "--target", "25").out
    assert f"there are some on {N_PROMPTS}; add prompts to the {N_PROMPTS} that can" in forecast
    assert sampled.tourney("verify").code == 0
    assert sampled.tourney("replay").out == "2 runs rebuilt, 0 differences\n"


def test_a_pilot_has_all_samples_of_its_prompts(sampled: Sampled) -> None:
    """Of six prompts it draws one, and that three times."""
    assert sampled.tourney("run", "--yes", "--mode", "pilot").code == 0

    texts = [str(body["messages"]) for body in sampled.asked]
    assert (len(texts), len(set(texts))) == (6, 1)


def test_greedy_entrants_are_refused_several_samples(sampled: Sampled) -> None:
    """The same text three times would be paid for, and say nothing."""
    refused = sampled.tourney("plan", "generate", temperature="")
    checked = sampled.tourney("doctor", temperature="")

    assert refused.code == 2
    assert "each time: set `temperature` in [[entrants]] of small" in refused.err
    assert "gives the same text each time" in " ".join(checked.out.split())
    assert sampled.asked == []
