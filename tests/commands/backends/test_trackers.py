"""Trackers of experiments: a client of its own logs a run, or says in one line why not."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from commands.backends.trackers import log_run
from commands.errors import ConfigurationError
from commands.report.published import TrackedRun
from tests.support.forked import in_child

RUN = TrackedRun(
    project="cup",
    name="first",
    facts={"judge": "strict"},
    metrics={"factuality/base/rating": 1010.5, "factuality/base/low": 990.0},
    files={"report.html": "<p>Report", "report.md": "# Report"},
)


@pytest.mark.nightly
def test_weights_and_biases_has_ratings_and_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a run that can be sent later, if it is told to stay offline."""
    monkeypatch.setitem(os.environ, "WANDB_MODE", "offline")
    monkeypatch.setitem(os.environ, "WANDB_DIR", str(tmp_path))

    def log() -> None:
        folder = Path(log_run("wandb", RUN))
        assert folder.is_relative_to(tmp_path)
        (report,) = (folder / "media" / "html").iterdir()
        assert report.read_text() == RUN.files["report.html"]

    in_child(log)


@pytest.mark.nightly
def test_what_mlflow_refuses_is_one_line_and_without_a_place_says_how_to_name_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a place its own words are about a registry of models, which nobody asked for."""
    pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    if find_spec("sqlalchemy") is not None:
        pytest.skip("the whole of MLflow logs to a file of its own")

    def log() -> None:
        with pytest.raises(ConfigurationError, match="set MLFLOW_TRACKING_URI, for instance to"):
            log_run("mlflow", RUN)
        os.environ["MLFLOW_TRACKING_URI"] = "nobody://knows"
        with pytest.raises(ConfigurationError, match=r"^mlflow: .*nobody://knows") as refused:
            log_run("mlflow", RUN)
        assert len(str(refused.value).splitlines()) == 1

    in_child(log)


def test_a_client_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither is needed for anything else."""
    monkeypatch.setattr("commands.backends.trackers.find_spec", lambda _: None)

    with pytest.raises(ConfigurationError, match="mlflow is not installed; pip install mlflow"):
        log_run("mlflow", RUN)
