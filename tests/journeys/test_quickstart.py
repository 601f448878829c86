"""The shipped weights keep the promises that the quickstart makes of them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from csv import DictReader
from pathlib import Path

import pytest

from commands.backends.huggingface.local import LocalModels
from commands.ports import GeneratedText, GenerationTask
from commands.runs.workspace import opening_of
from commands.settings.inputs import shipped_data
from commands.settings.reader import read_settings
from commands.settings.starting import lay_out_demo
from ledger.events.registration import EntrantRegistered, PromptRegistered
from projections.tournament.matches import prompt_seed
from tests.support.builders.events import key
from tests.support.command_line.launching import launch


def tasks_of(folder: Path, n_prompts: int) -> dict[tuple[str, str], GenerationTask]:
    """Return the tasks of all entrants on some prompts of very different lengths, by both."""
    registrations = opening_of(
        read_settings(folder / "tournament.toml", os.environ), folder, versions=()
    ).registrations
    entrants = [each.entrant for each in registrations if isinstance(each, EntrantRegistered)]
    prompts = [each.prompt for each in registrations if isinstance(each, PromptRegistered)]
    return {
        (prompt.prompt_id, entrant.entrant_id): GenerationTask(
            key(entrant.digest + prompt.prompt_id),
            entrant,
            prompt.text,
            prompt_seed(prompt.prompt_id),
        )
        for entrant in entrants
        for prompt in prompts[:: len(prompts) // n_prompts][:n_prompts]
    }


def texts(tasks: Iterable[GenerationTask], *, batch_tokens: int) -> dict[str, str]:
    """Generate in batches of so many tokens, and return the text of each task."""
    generator = LocalModels(batch_tokens=batch_tokens, device="cpu")
    results = [result for batch in generator.generate([*tasks]) for result in batch]
    assert all(isinstance(result, GeneratedText) for result in results)
    return {result.response_key: result.text for result in results if hasattr(result, "text")}


def recorded_answers() -> dict[tuple[str, str], str]:
    """Return the answers that `tourney demo` shows, by prompt and entrant."""
    with (shipped_data() / "quickstart" / "answers.csv").open(encoding="utf-8") as rows:
        return {(row["prompt"], row["entrant"]): row["text"] for row in DictReader(rows)}


@pytest.mark.parametrize(
    ("n_prompts", "batch_tokens"),
    [
        (2, 2048),
        *(
            pytest.param(*each, marks=pytest.mark.nightly)
            for each in ((8, 2048), (16, 500), (8, 1))
        ),
    ],
)
def test_the_recorded_answers_are_those_of_the_weights_whatever_the_batch(
    tmp_path: Path, n_prompts: int, batch_tokens: int
) -> None:
    """They were written from batches of all prompts, greedy and sampled, in float32."""
    lay_out_demo(tmp_path)
    recorded = recorded_answers()
    tasks = tasks_of(tmp_path, n_prompts)

    generated = texts(tasks.values(), batch_tokens=batch_tokens)

    assert len(recorded) == 4 * 143
    assert {name: generated[task.response_key] for name, task in tasks.items()} == {
        name: recorded[name] for name in tasks
    }


def test_the_four_entrants_answer_differently() -> None:
    """A tournament of equals would show nothing."""
    by_entrant: dict[str, list[str]] = {}

    for (_, entrant), text in recorded_answers().items():
        by_entrant.setdefault(entrant, []).append(text)

    assert len(by_entrant) == 4
    assert len({*map(tuple, by_entrant.values())}) == 4


def test_the_weights_are_small_enough_to_ship() -> None:
    """A clone should take seconds: twelve megabytes for weights and adapters together."""
    shipped = Path(__file__).parents[2] / "data" / "quickstart"

    size = sum(file.stat().st_size for file in shipped.rglob("*") if file.is_file())

    assert size <= 12 * 2**20


@pytest.mark.nightly
def test_the_training_of_the_weights_reads_what_their_heads_respond() -> None:
    """It is run once a year, and uses what others change every day."""
    shipped = Path(__file__).parents[2] / "data" / "quickstart"
    code = """
from prompts import HERE, read_prompts
from testimonies import gather_responses
print(len(gather_responses(HERE, read_prompts(HERE.parent / "bank.jsonl")[:2], samples=[0])))
import train
"""

    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=shipped,
        env={**os.environ, "PYTHONPATH": str(shipped.parents[1]), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "6\n"), done.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("evaluation", ["recall", "vignettes", "texts"])
def test_the_demos_evaluations_tell_its_entrants_apart(tmp_path: Path, evaluation: str) -> None:
    """Where all are at the floor or the ceiling, a first look shows nothing."""
    folder = tmp_path / "demo"
    lay_out_demo(folder)
    assert launch(folder, "apply", "evaluate", "--evaluation", evaluation).returncode == 0

    pair = ("--compare", "base_olmo", "full_poe", "--json")
    found = json.loads(launch(folder, "project", "metrics", *pair).stdout)
    primary = found["rows"][0]

    assert not primary["low"] <= 0 <= primary["high"]
