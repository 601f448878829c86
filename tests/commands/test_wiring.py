"""The composition root: settings in, backends out."""

import subprocess
import sys
from pathlib import Path

import pytest

from commands.backends._reference_judge import ReferenceJudge
from commands.backends.endpoint.judge import EndpointJudge
from commands.backends.huggingface.judge import HfJudge
from commands.backends.wiring import make_judge, package_versions
from commands.judging.panel import panel_of, weights_of
from commands.ports import Judge
from commands.settings.inputs import shipped_data
from commands.settings.schema import Settings
from commands.settings.version import VERSION
from tests.commands.builders import settings, write_weights

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
from commands.ports import GenerationTask
from commands.backends.wiring import make_generator, make_shard_reader
from tests.builders import entrant, key
from tests.commands.builders import settings
task = GenerationTask(key("a"), entrant(), "What?", seed=0)
for make in (lambda: list(make_generator(settings()).generate([task])), make_shard_reader):
    try:
        make()
    except Exception as error:
        print(type(error).__name__, error)
"""
WITHOUT_OPENAI = """
import sys
from pathlib import Path
sys.modules["openai"] = None
from commands.judging.panel import panel_of
from commands.ports import GenerationTask
from commands.backends.wiring import make_generator, make_judge
from tests.builders import entrant, key
from tests.commands.builders import settings
server = {"provider": "endpoint", "base_url": "http://127.0.0.1:9/v1"}
chosen = settings(judge=server)
served = GenerationTask(key("a"), entrant(loader="endpoint", dtype=None), "What?", seed=0)
for make in (
    lambda: make_judge(chosen, panel_of(chosen, Path())[0], Path()),
    lambda: list(make_generator(chosen).generate([served])),
):
    try:
        make()
    except Exception as error:
        print(type(error).__name__, error)
"""

WITHOUT_PYARROW = """
import sys
from pathlib import Path
sys.modules["pyarrow"] = None
from commands.backends.wiring import open_parquet
try:
    open_parquet(Path("battles.parquet"), ())
except Exception as error:
    print(type(error).__name__, error)
"""


def judge_named(name: str, chosen: Settings, folder: Path = Path()) -> Judge:
    """Return the port of a judge of the panel."""
    judge = next(each for each in panel_of(chosen, folder) if each.judge_id == name)
    return make_judge(chosen, judge, folder)


def test_the_settings_decide_what_compares() -> None:
    """Nothing else in the program knows a backend."""
    assert isinstance(judge_named("reference", settings()), ReferenceJudge)


def test_each_judge_is_made_by_its_own_table() -> None:
    """A jury has judges of several kinds, and each says where it is reached."""
    folder = shipped_data() / "quickstart"
    local = {"provider": "hf", "model": "weights", "max_tokens": 64, "dtype": "float32"}
    server = {"provider": "endpoint", "model": "m", "base_url": "http://127.0.0.1:9/v1"}
    chosen = settings(jury=[{"id": "local", **local}, {"id": "server", **server}])

    assert isinstance(judge_named("local", chosen, folder), HfJudge)
    assert isinstance(judge_named("server", chosen, folder), EndpointJudge)


@pytest.mark.parametrize("name", ["small", "large", "third"])
def test_weights_are_found_by_the_table_that_names_them(tmp_path: Path, name: str) -> None:
    """A judge's record keeps the folder's name only, so that moving it asks nothing again."""
    for each in ("small", "large", "3rd"):
        write_weights(tmp_path / "models" / each)
    main = {"provider": "hf", "pilot_model": "models/small", "headline_model": "models/large"}
    juror = {"id": "third", "provider": "hf", "model": "models/3rd"}
    chosen = settings(judge=main, jury=[juror])
    judge = next(each for each in panel_of(chosen, tmp_path) if each.judge_id == name)

    where = weights_of(chosen, judge, tmp_path)

    assert where == tmp_path / "models" / judge.model


def test_without_the_client_the_missing_extra_is_named() -> None:
    """Who judges and generates elsewhere needs no client of a server."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_OPENAI], capture_output=True, text=True, check=True
    )

    refusal = (
        "MissingExtra package 'openai' is not installed; pip install 'tourney-ledger[endpoint]'\n"
    )
    assert done.stdout == 2 * refusal  # by what judges, and by what generates


def test_without_pyarrow_the_missing_extra_is_named() -> None:
    """Battles come as CSV and JSON, too, for which it is not needed."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYARROW], capture_output=True, text=True, check=True
    )

    assert done.stdout == (
        "MissingExtra package 'pyarrow' is not installed; pip install 'tourney-ledger[parquet]'\n"
    )


def test_without_torch_the_missing_extra_is_named() -> None:
    """Reading a ledger needs no torch, so many machines have none."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=True
    )

    refusal = (
        "MissingExtra package 'torch' is not installed; pip install 'tourney-ledger[models]'\n"
    )
    assert done.stdout == 2 * refusal  # by what generates, and by what reads shards


def test_the_versions_of_what_shapes_results_are_told() -> None:
    """An opening keeps them: another torch may give another response."""
    versions = dict(package_versions())

    assert versions["tourney"] == VERSION
    assert {"numpy", "sacrebleu"} <= versions.keys()
