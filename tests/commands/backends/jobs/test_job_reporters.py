"""Metrics of a training, where it is watched."""

import os
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from commands.backends.jobs.job import ExecutionSpec, reporter_to
from commands.errors import ConfigurationError
from tests.support.forked import in_child


@pytest.fixture
def spec(tmp_path: Path) -> ExecutionSpec:
    """Give a job."""
    return ExecutionSpec("probe", project="olmo", root=tmp_path)


@pytest.mark.nightly
def test_weights_and_biases_has_what_was_reported(
    spec: ExecutionSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a run of the job's name, at the steps of the training; offline."""
    monkeypatch.setitem(os.environ, "WANDB_MODE", "offline")
    monkeypatch.setitem(os.environ, "WANDB_DIR", str(tmp_path))

    def train() -> None:
        report = reporter_to("wandb", spec)
        report(10, {"doses/score": 0.25})
        report(20, {"doses/score": 0.5})
        wandb = cast("Any", sys.modules["wandb"])
        told = dict(wandb.run.summary)
        names = (wandb.run.project, wandb.run.group, wandb.run.name)
        wandb.finish()
        assert (told["doses/score"], told["train/global_step"]) == (0.5, 20)
        assert names == ("olmo", "default", "probe")

    in_child(train)


def test_an_unknown_place_is_refused_with_those_that_are_known(spec: ExecutionSpec) -> None:
    """Before the training begins."""
    with pytest.raises(ConfigurationError, match="'mlflow'; choose of 'tensorboard', 'wandb'"):
        reporter_to("mlflow", spec)


def test_a_client_that_is_not_installed_is_named(
    spec: ExecutionSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the training begins, not after its first hour."""
    monkeypatch.setattr("commands.backends.jobs.job.find_spec", lambda _: None)

    with pytest.raises(ConfigurationError, match="not installed: pip install tensorboard"):
        reporter_to("tensorboard", spec)
