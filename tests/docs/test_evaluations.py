"""The page's evaluation is what a researcher begins with."""

import re
import tomllib
from pathlib import Path

from commands.evaluating.registry import SHIPPED, evaluation_of
from commands.ports import GenerationTask
from commands.settings.sections import EvaluationSection
from tests.docs.evaluations import PAGE, blocks
from tests.support.builders.evaluating import answering


def convert(task: GenerationTask) -> str:
    """Convert milligrams as they should be, up to 5 of them."""
    (mg,) = re.findall(r"are (\d+) mg", task.prompt_text)
    return f" {1000 * int(mg):,}\n" if int(mg) <= 5 else "many"


def test_the_class_of_the_page_runs_as_its_table_says(tmp_path: Path) -> None:
    """An example that does not run costs its reader the first hour."""
    (code, *_), tables = blocks("python"), [tomllib.loads(each) for each in blocks("toml")]
    (tmp_path / "evaluations.py").write_text(code, encoding="utf-8")
    section = EvaluationSection.model_validate(tables[1]["evaluations"][0])

    evaluation = evaluation_of(section, tmp_path, ())

    assert len(evaluation) == 50
    assert evaluation(answering(convert)[0], reduce="sum") == 5.0
    assert len(evaluation.samples(section.options)) == 10


def test_the_page_lists_every_shipped_evaluation() -> None:
    """What is not listed is not found."""
    EvaluationSection.model_validate(tomllib.loads(blocks("toml")[0])["evaluations"][0])
    listed = set(re.findall(r"`([a-z]+(?:-[a-z]+)?)`", PAGE.read_text(encoding="utf-8")))

    assert listed >= SHIPPED.keys()
