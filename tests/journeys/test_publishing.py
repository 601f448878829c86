"""A tournament for other places: a data set of the Hub, records, and a tracker's run."""

import json
from importlib import import_module
from pathlib import Path

import pytest

from ledger.store import Ledger
from tests.support.builders.events import STREAM
from tests.support.builders.worlds import cup, history
from tests.support.command_line.launching import launch


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Give a folder with the ledger of three entrants, of whom two met once and a pair is open."""
    with Ledger.open(tmp_path / "tournament.db") as ledger:
        ledger.append(STREAM, history(cup(), "a", "b", "tie", "a", "inconsistent"))
    return tmp_path


def test_a_data_set_is_loaded_as_the_hub_loads_it_and_imported_again(place: Path) -> None:
    """Its card says which file is which; exported again it is the same."""
    done = launch(place, "export", "hub", "shared data")
    assert done.returncode == 0, done.stderr
    assert "hf upload ORG/NAME 'shared data' --repo-type dataset" in done.stderr

    datasets = import_module("datasets")  # here: not all who run tests should import it
    folder, cache = str(place / "shared data"), str(place / "cache")
    battles = datasets.load_dataset(folder, split="train", cache_dir=cache)
    responses = datasets.load_dataset(folder, "responses", split="train", cache_dir=cache)
    assert battles[0]["model_a"] == "zoe"
    assert {*battles["question_id"]} <= {*responses["prompt_id"]}
    assert len(responses) == 6

    first = (place / "shared data" / "battles.parquet").read_bytes()
    assert launch(place, "export", "hub", "shared data").returncode == 0
    assert (place / "shared data" / "battles.parquet").read_bytes() == first
    imported = launch(place, "import", "battles", f"{folder}/battles.parquet", "-l", "there.db")
    assert imported.returncode == 0, imported.stderr


def test_records_are_a_file_for_each_entrant(place: Path) -> None:
    """Where nobody is rated, there is nothing to publish."""
    assert launch(place, "export", "every-eval-ever", "records").returncode == 0
    records = [json.loads(each.read_text()) for each in (place / "records").rglob("*.json")]
    assert sorted(each["model_info"]["id"] for each in records) == ["amy", "kim", "zoe"]

    with Ledger.open(place / "open.db") as ledger:
        ledger.append(STREAM, cup())
    refused = launch(place, "export", "every-eval-ever", "none", "-l", "open.db")
    assert refused.returncode == 2
    assert "no entrant is rated yet" in refused.stderr


def test_a_run_is_logged_where_the_clients_own_variables_say(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With ratings, intervals and the report, in an experiment of the tournament's name."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (place / "mlruns").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")

    done = launch(place, "export", "mlflow", "--name", "new prompt")

    assert done.returncode == 0, done.stderr
    assert f"logged as 'new prompt' of '{STREAM}'" in done.stderr
    (run,) = (place / "mlruns").glob("*/*/metrics")
    metrics = {each.relative_to(run).as_posix() for each in run.rglob("*") if each.is_file()}
    assert {"factuality/zoe/rating", "factuality/zoe/elo"} <= metrics
    assert sorted(each.name for each in (run.parent / "artifacts").iterdir()) == [
        "report.html",
        "report.md",
    ]
    assert (run.parent / "tags" / "mlflow.runName").read_text() == "new prompt"
