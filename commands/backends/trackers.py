"""Log a run to a tracker of experiments, MLflow or Weights & Biases, by its own client."""

from importlib import import_module
from importlib.util import find_spec
from operator import attrgetter
from typing import Any, Final, Literal, TypeAlias

from commands.backends.remote.bodies import first_line
from commands.errors import ConfigurationError
from commands.report.published import TrackedRun

Tracker: TypeAlias = Literal["mlflow", "wandb"]


def log_run(tracker: Tracker, run: TrackedRun) -> str:
    """Log a run where the client's own settings say, and return where that is.

    Raises:
        ConfigurationError: The client is not installed, or cannot log.
    """
    if find_spec(tracker) is None:
        raise ConfigurationError([f"{tracker} is not installed; pip install {tracker}"])
    client = import_module(tracker)
    log, failure_of = _TRACKERS[tracker]
    try:
        return log(client, run)
    except (failure_of(client), OSError) as error:
        if tracker == "mlflow" and not client.is_tracking_uri_set():
            why = f"it cannot log to {client.get_tracking_uri()}, where it logs if nothing is said"
            remedy = (
                "set MLFLOW_TRACKING_URI, for instance to http://localhost:5000 (`mlflow server`)"
            )
            raise ConfigurationError([f"mlflow: {why}; {remedy}"]) from error
        raise ConfigurationError([f"{tracker}: {first_line(error)}"]) from error


def _to_mlflow(mlflow: Any, run: TrackedRun) -> str:  # noqa: ANN401  # may be missing
    mlflow.set_experiment(run.project)
    with mlflow.start_run(run_name=run.name):
        mlflow.log_params(run.facts)
        mlflow.log_metrics(run.metrics)
        for name, text in run.files.items():
            mlflow.log_text(text, name)
    return str(mlflow.get_tracking_uri())


def _to_wandb(wandb: Any, run: TrackedRun) -> str:  # noqa: ANN401  # likewise
    with wandb.init(project=run.project, name=run.name, config={**run.facts}) as logged:
        logged.summary.update(run.metrics)
        logged.log({"report": wandb.Html(run.files["report.html"], inject=False)})
        return str(logged.dir if logged.offline else logged.url)


_TRACKERS: Final = {
    "mlflow": (_to_mlflow, attrgetter("exceptions.MlflowException")),
    "wandb": (_to_wandb, attrgetter("errors.Error")),
}
"""By the client's name, what logs a run, and what the client raises."""
