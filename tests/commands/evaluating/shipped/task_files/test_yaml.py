"""YAML files with what they include; functions are names, and never run."""

from pathlib import Path

import pytest

from commands.errors import ConfigurationError
from commands.evaluating.shipped.task_files._yaml import NamedFunction, function_faults, read_keys


def write(folder: Path, **files: str) -> Path:
    """Write files, and return the first."""
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder / next(iter(files))


def test_own_keys_go_before_included_ones_and_null_removes_one(tmp_path: Path) -> None:
    """So a file of one's own changes another without a copy of it."""
    file = write(
        tmp_path,
        own="include: [first, second]\ntask: own\nprocess_docs: null\n",
        first="include: null\ntask: first\nrepeats: 1\nprocess_docs: !function utils.docs\n",
        second="repeats: 2\n",
    )

    assert read_keys(file) == {"task": "own", "repeats": 2}


def test_a_function_is_a_name_that_is_told_with_its_key(tmp_path: Path) -> None:
    """Who reads numbers should not have to run a stranger's code."""
    file = write(tmp_path, own="task: a\nmetric_list:\n  - metric: !function utils.mine\n")

    keys = read_keys(file)

    assert keys["metric_list"] == [{"metric": NamedFunction("utils.mine")}]
    (fault,) = function_faults(file, keys)
    assert fault.startswith(f"{file}: metric_list is !function utils.mine; tourney runs no Python")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("include: own", "it includes itself"),
        ("include: none", "cannot be read: No such file or directory"),
        ("- a\n- b\n", "it must be a mapping of keys, as `task: name`"),
        ("task: [a", "not YAML: while parsing a flow sequence"),
        ("task: !!python/name:os.system ''", "not YAML: could not determine a constructor"),
    ],
)
def test_a_faulty_file_is_named(tmp_path: Path, text: str, why: str) -> None:
    """With the file that is faulty, not the one that includes it."""
    file = write(tmp_path, own=text)

    with pytest.raises(ConfigurationError) as caught:
        read_keys(file)

    assert why in str(caught.value)
