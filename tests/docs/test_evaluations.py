"""The page's evaluation is what a researcher begins with."""

import re
import tomllib
from collections.abc import Mapping
from itertools import count
from pathlib import Path

from msgspec.structs import astuple

from commands.evaluating.registry import SHIPPED
from commands.ports import GenerationTask
from commands.settings.sections import EvaluationSection
from tests.docs import own, pages
from tests.docs.own import blocks
from tests.support.builders.evaluating import answering, make, write_lines

HYDRA = re.compile(r'loader = "hydra".*?temperature = 0\.98\n(?:beta.*?\n)?', re.DOTALL)


def convert(task: GenerationTask) -> str:
    """Convert milligrams as they should be, up to 5 of them."""
    (mg,) = re.findall(r"are (\d+) mg", task.prompt_text)
    return f" {1000 * int(mg):,}\n" if int(mg) <= 5 else "many"


def test_the_class_of_the_page_runs_as_its_table_says(tmp_path: Path) -> None:
    """An example that does not run costs its reader the first hour."""
    (code, *_), tables = blocks("python"), [tomllib.loads(each) for each in blocks("toml")]
    (tmp_path / "evaluations.py").write_text(code, encoding="utf-8")
    section = EvaluationSection.model_validate(tables[-1]["evaluations"][0])

    evaluation = make(section.uses, tmp_path, (), **section.parameters)

    assert len(evaluation) == 50
    assert evaluation(answering(convert)[0], reduce="sum") == 5.0
    assert len(evaluation.samples(section.options)) == 10


CHOICES = {"text": ["x", "y"], "label": ["A", "B"]}
DATA: Mapping[str, Mapping[str, object]] = {
    "mmlu": {"question": "?", "choices": ["x", "y"], "answer": 1, "subject": "law"},
    "arc": {"question": "?", "choices": CHOICES, "answerKey": "B"},
    "hellaswag": {"ctx": "?", "endings": ["x", "y"], "label": "1"},
    "pubmedqa": {"question": "?", "context": {"contexts": ["a"]}, "final_decision": "no"},
    "gsm8k": {"question": "?", "answer": "1 + 1 = 2 #### 2"},
}


def test_data_sets_of_the_page_need_six_lines_and_no_python(tmp_path: Path) -> None:
    """A field's name is all that is asked of who has a data set."""
    for name, row in DATA.items():
        write_lines(tmp_path / f"{name}.jsonl", row)
    write_lines(tmp_path / "mmlu-dev.jsonl", *[DATA["mmlu"]] * 5)
    tables = [table for block in blocks("toml") for table in block.split("\n\n")]
    layouts = [table for table in tables if "file =" in table]

    made = {}
    for layout in layouts:
        section = EvaluationSection.model_validate(tomllib.loads(layout)["evaluations"][0])
        made[section.id] = make(section.uses, tmp_path, (), **section.parameters)

    assert made.keys() == DATA.keys()
    assert all(len(each.splitlines()) <= 6 for each in layouts)
    assert {name: astuple(each.item(0))[-1] for name, each in made.items()} == {
        **dict.fromkeys(made, 1),
        "gsm8k": "2",
    }


def test_the_page_lists_every_shipped_evaluation() -> None:
    """What is not listed is not found."""
    EvaluationSection.model_validate(tomllib.loads(blocks("toml")[0])["evaluations"][0])
    listed = set(re.findall(r"`([a-z]+(?:-[a-z]+)?)`", own.EVALUATIONS.read_text(encoding="utf-8")))

    assert listed >= SHIPPED.keys()


def test_the_judged_evaluation_of_the_page_is_what_happens(tmp_path: Path) -> None:
    """Its rubric and table are files that a newcomer copies; here weights have no heads."""
    folder = own.lay_out_judged(tmp_path / "judged")
    settings, numbers = folder / "tournament.toml", count(5)
    settings.write_text(
        HYDRA.sub(
            lambda _: f'weights = "weights"\ntemperature = 0.{next(numbers)}\n',
            settings.read_text(),
        )
    )

    (session,) = (each for each in pages.blocks(own.EVALUATIONS) if each.mark == "judged")
    pages.require_as_shown(session, folder)
