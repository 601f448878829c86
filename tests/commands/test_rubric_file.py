"""Reading rubrics, and those that ship."""

from pathlib import Path

import pytest

import rubrics
from commands.errors import ConfigurationError
from commands.settings.inputs import read_rubric
from ledger.events.registration import Rubric
from ledger.identity import Dimension
from tests.commands.builders import write_rubric

FACTUALITY = Dimension("factuality")


def read(folder: Path, text: str) -> Rubric:
    """Write a rubric and read it."""
    path = folder / "factuality.md"
    path.write_text(text, encoding="utf-8")
    return read_rubric(path, FACTUALITY)


def fault(folder: Path, text: str) -> str:
    """Return what is wrong, its place without the folder."""
    with pytest.raises(ConfigurationError) as caught:
        read(folder, text)
    (found,) = caught.value.faults
    return found.removeprefix(f"{folder}/")


def test_a_rubric_is_kept_whole_with_its_version(tmp_path: Path) -> None:
    """The judge is shown the file as it is, and its digest names the version line too."""
    text = "<!-- version: 2.1 -->\n+++\nneeds_gold = true\n+++\n\n# Factuality\n"

    rubric = read(tmp_path, text)

    assert rubric == Rubric(dimension=FACTUALITY, version="2.1", needs_gold=True, text=text)


def test_front_matter_says_what_the_judge_is_shown(tmp_path: Path) -> None:
    """Only some dimensions may see the gold answer or the expected behaviour."""
    front = "needs_gold = false\nshows_expected_behavior = true"

    rubric = read_rubric(write_rubric(tmp_path / "r.md", front=front), FACTUALITY)

    assert not rubric.needs_gold
    assert rubric.shows_expected_behavior


def test_a_rubric_without_a_version_is_refused(tmp_path: Path) -> None:
    """Verdicts are quoted with the version of the rubric that they were given under."""
    assert fault(tmp_path, "# Factuality\n") == (
        "factuality.md:1: a rubric begins with its version, as in <!-- version: 1 -->"
    )


def test_a_rubric_without_front_matter_is_refused(tmp_path: Path) -> None:
    """Whether gold is needed has no default that could pass for the author's choice."""
    assert fault(tmp_path, "<!-- version: 1 -->\n# Factuality\n").startswith(
        "factuality.md:2: front matter is missing: +++, then needs_gold = true or false"
    )


@pytest.mark.parametrize(
    ("front", "said"),
    [
        ("needs_gold yes", "the front matter is not TOML: Expected '='"),
        ("needs_gold = 'maybe'", "the front matter is wrong: 'needs_gold': Input should be a val"),
        ("needs_glod = true", "'needs_gold': Field required; 'needs_glod': Extra inputs are not"),
    ],
)
def test_wrong_front_matter_is_told_on_one_line(tmp_path: Path, front: str, said: str) -> None:
    """A fault among others has one line of its own, without the libraries' links."""
    found = fault(tmp_path, f"<!-- version: 1 -->\n+++\n{front}\n+++\n")

    assert found.startswith("factuality.md:2: ")
    assert said in found
    assert "\n" not in found


def test_a_rubric_that_is_not_there_is_told_by_its_path(tmp_path: Path) -> None:
    """A wrong path in the settings is found before anything is recorded."""
    with pytest.raises(ConfigurationError, match=r"none\.md: the rubric cannot be read: "):
        read_rubric(tmp_path / "none.md", FACTUALITY)


@pytest.mark.parametrize(
    ("dimension", "needs_gold", "shows_expected_behavior"),
    [
        ("factuality", True, False),
        ("clinical_utility", False, False),
        ("calibration", False, True),
    ],
)
def test_the_shipped_rubrics_read_well(
    dimension: str, needs_gold: bool, shows_expected_behavior: bool
) -> None:
    """Gold answers would bias a judge on every dimension but factuality."""
    path = Path(rubrics.__path__[0]) / f"{dimension}.md"

    rubric = read_rubric(path, Dimension(dimension))

    assert rubric.version == "1"
    assert rubric.needs_gold is needs_gold
    assert rubric.shows_expected_behavior is shows_expected_behavior
    assert "## How to compare" in rubric.text
