"""Several responses to each prompt: each is asked once, and intervals count them as one prompt."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.providers.openai import FakeOpenAI, Json, Said
from tests.support.command_line.served import JUDGE, Served

N_PROMPTS: Final = 6
MODELS: Final = ("small-3b", "large-32b")


def configure(sampled: Served, samples: int, temperature: str = "temperature = 1.0\n") -> None:
    """Let each entrant answer so many times."""
    entrants = {model: f"{sampled.at(model)}{temperature}" for model in MODELS}
    sampled.configure(entrants, further=f"[generation]\nsamples = {samples}")


def asked(sampled: Served) -> list[Json]:
    """Return the requests to entrants."""
    return [body for model in MODELS for body in sampled.asked(model)]


def _say(body: Json) -> Said:
    if body["model"] == JUDGE:
        text = str(body["messages"])
        is_first = text.index("large-32b says") < text.index("small-3b says")
        return Said(f"VERDICT: {'A' if is_first else 'B'}")
    return Said(f"{body['model']} says {body['seed']}.")


@pytest.fixture
def sampled(tmp_path: Path) -> Iterator[Served]:
    """Give a tournament on a few prompts."""
    with FakeOpenAI(_say) as server:
        sampled = Served(tmp_path, server, n_prompts=N_PROMPTS)
        configure(sampled, 3)
        yield sampled


def test_further_samples_owe_only_themselves(sampled: Served) -> None:
    """Each sample has a seed of its own, and sample i meets sample i."""
    configure(sampled, 1)
    assert sampled.tourney("run", "--yes").code == 0
    assert (len(asked(sampled)), len(sampled.asked())) == (2 * N_PROMPTS, 2 * N_PROMPTS)

    configure(sampled, 3)
    done = sampled.tourney("run", "--yes")
    assert done.code == 0, done.err
    assert (len(asked(sampled)), len(sampled.asked())) == (6 * N_PROMPTS, 6 * N_PROMPTS)
    seeds = {(body["model"], str(body["messages"]), body["seed"]) for body in asked(sampled)}
    assert len(seeds) == 6 * N_PROMPTS

    rows = sampled.rows("project", "matches")
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


def test_a_pilot_has_all_samples_of_its_prompts(sampled: Served) -> None:
    """Of six prompts it draws one, and that three times."""
    assert sampled.tourney("run", "--yes", "--mode", "pilot").code == 0

    texts = [str(body["messages"]) for body in asked(sampled)]
    assert (len(texts), len(set(texts))) == (6, 1)


def test_greedy_entrants_are_refused_several_samples(sampled: Served) -> None:
    """The same text three times would be paid for, and say nothing."""
    configure(sampled, 3, temperature="")
    refused = sampled.tourney("plan", "generate")
    checked = sampled.tourney("doctor")

    assert refused.code == 2
    assert "each time: set `temperature` in [[entrants]] of small-3b" in refused.err
    assert "gives the same text each time" in " ".join(checked.out.split())
    assert asked(sampled) == []
