"""The composition root: settings in, backends out."""

import subprocess
import sys

from commands.backends.hf_generator import HfGenerator
from commands.backends.reference_judge import ReferenceJudge
from commands.version import VERSION
from commands.wiring import make_generator, make_judge, package_versions
from tests.commands.builders import settings

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
from commands.wiring import make_generator
from tests.commands.builders import settings
try:
    make_generator(settings())
except Exception as error:
    print(type(error).__name__, error)
"""


def test_the_settings_decide_what_answers_and_what_compares() -> None:
    """Nothing else in the program knows a backend."""
    chosen = settings(generation={"device": "cpu"})

    assert isinstance(make_generator(chosen), HfGenerator)
    assert isinstance(make_judge(chosen), ReferenceJudge)


def test_without_torch_the_missing_extra_is_named() -> None:
    """Reading a ledger needs no torch, so many machines have none."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=True
    )

    assert done.stdout == (
        "MissingExtra package 'torch' is not installed; pip install 'tourney[models]'\n"
    )


def test_the_versions_of_what_shapes_results_are_told() -> None:
    """An opening keeps them: another torch may give another response."""
    versions = dict(package_versions())

    assert versions["tourney"] == VERSION
    assert {"numpy", "sacrebleu"} <= versions.keys()
