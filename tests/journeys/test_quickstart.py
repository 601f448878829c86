"""The shipped weights keep the promises that the quickstart makes of them."""

import json
import os
from csv import DictReader
from pathlib import Path

import pytest
from msgspec.structs import replace

from commands.backends.huggingface.local import LocalModels
from commands.ports import GeneratedText, GenerationTask
from commands.runs.register import opening_of
from commands.settings.inputs import shipped_data
from commands.settings.reader import read_settings
from commands.settings.starting.demo import lay_out_demo
from ledger.events.registration import Entrant, EntrantRegistered, PromptRegistered
from projections.tournament.matches import prompt_seed
from tests.support.builders.events import key
from tests.support.command_line.launching import launch

N_PROMPTS, MAX_NEW_TOKENS = 8, 8


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> list[GenerationTask]:
    """Give short tasks of all four entrants on prompts of very different lengths."""
    folder = tmp_path_factory.mktemp("quickstart") / "demo"
    lay_out_demo(folder)
    return [
        GenerationTask(
            task.response_key,
            replace(task.entrant, max_new_tokens=MAX_NEW_TOKENS),
            task.prompt_text,
            task.seed,
        )
        for task in all_tasks(folder).values()
    ]


def all_tasks(folder: Path) -> dict[tuple[str, str], GenerationTask]:
    """Return the tasks of all entrants on some prompts, by prompt and entrant."""
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
        for prompt in prompts[:: len(prompts) // N_PROMPTS][:N_PROMPTS]
    }


def texts(tasks: list[GenerationTask], *, rows: int) -> dict[str, str]:
    """Generate in batches of about so many rows, and return the text of each task."""
    widest = max(len(task.prompt_text) for task in tasks) // 3 + MAX_NEW_TOKENS
    generator = LocalModels(batch_tokens=1 if rows == 1 else rows * widest, device="cpu")
    results = [result for batch in generator.generate(tasks) for result in batch]
    assert all(isinstance(result, GeneratedText) for result in results)
    return {result.response_key: result.text for result in results if hasattr(result, "text")}


@pytest.fixture(scope="module")
def answers(tasks: list[GenerationTask]) -> dict[str, str]:
    """Give the text of each task, generated in batches of five."""
    return texts(tasks, rows=5)


def test_responses_do_not_depend_on_the_batch(
    tasks: list[GenerationTask], answers: dict[str, str]
) -> None:
    """Greedy or sampled, in float32, a response belongs to its prompt and seed alone."""
    alone = texts(tasks[::3], rows=1)

    assert alone.items() <= answers.items()


def test_the_four_entrants_answer_differently(
    tasks: list[GenerationTask], answers: dict[str, str]
) -> None:
    """A tournament of equals would show nothing."""
    by_entrant: dict[str, list[str]] = {}

    for task in tasks:
        by_entrant.setdefault(name_of(task.entrant), []).append(answers[task.response_key])

    assert len(by_entrant) == 4
    assert len({tuple(given) for given in by_entrant.values()}) == 4


def test_the_recorded_answers_are_those_of_the_weights(tmp_path: Path) -> None:
    """`tourney project responses --format csv` wrote them, in `tourney demo --weights`."""
    lay_out_demo(tmp_path)
    with (shipped_data() / "quickstart" / "answers.csv").open(encoding="utf-8") as rows:
        recorded = {(row["prompt"], row["entrant"]): row["text"] for row in DictReader(rows)}
    tasks = all_tasks(tmp_path)

    generated = texts([*tasks.values()], rows=8)

    assert len(recorded) == 4 * 143
    assert {name: generated[task.response_key] for name, task in tasks.items()} == {
        name: recorded[name] for name in tasks
    }


def test_the_weights_are_small_enough_to_ship() -> None:
    """A clone should take seconds: twelve megabytes for weights and adapters together."""
    shipped = Path(__file__).parents[2] / "data" / "quickstart"

    size = sum(file.stat().st_size for file in shipped.rglob("*") if file.is_file())

    assert size <= 12 * 2**20


def name_of(entrant: Entrant) -> str:
    """Return an entrant's label."""
    return entrant.entrant_id


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
