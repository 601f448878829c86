"""results.json: an entrant's evaluations, in the customer's format with more fields."""

import json
from collections.abc import Iterable
from typing import ClassVar

from ledger.chain import Head
from ledger.errors import TourneyError
from ledger.identity import Fields
from projections.evaluations.metrics import RunMetrics, headline_of, metrics_of
from projections.evaluations.state import EvaluationRun

GROUP = "default"


class MetricsCollide(TourneyError):
    """Two metrics have the same name, and one would hide the other."""

    exit_code: ClassVar[int] = 2

    def __init__(self, name: str, evaluations: tuple[str, str]) -> None:
        those = " and ".join(map(repr, evaluations))
        super().__init__(
            f"evaluations {those} both have a metric {name!r}, and a results file holds one;"
            " export them one by one with `tourney export results --evaluation`, or rename one"
        )
        self.name, self.evaluations = name, evaluations


def results_of(
    entrant: str, runs: Iterable[EvaluationRun], *, project: str, as_of: Head, group: str = GROUP
) -> Fields:
    """Return an entrant's results as JSON.

    `results` holds one number for each evaluation; evaluations without an observed sample are left
    out. The other fields are added beside it.

    Args:
        entrant: Whose label is the name of the job.
        runs: Its newest run of each evaluation.
        project: The tournament, or another name for the job's project.
        as_of: The head up to which the ledger was read.
        group: The job's group.

    Raises:
        MetricsCollide: Two evaluations have a metric of the same name.
    """
    every = [metrics_of(run) for run in runs]
    return {
        "job": entrant,
        "project": project,
        "group": group,
        "results": {
            metrics.run.plan.evaluation: value
            for metrics in every
            if (value := headline(metrics)) is not None
        },
        "metrics": _metrics(every),
        "evaluations": {metrics.run.plan.evaluation: _account(metrics) for metrics in every},
        "as_of": as_of.position,
        "head": as_of.chain,
    }


def results_file(results: Fields) -> bytes:
    """Return the file's bytes."""
    return f"{json.dumps(results, indent=2, ensure_ascii=False, allow_nan=False)}\n".encode()


def _metrics(every: Iterable[RunMetrics]) -> Fields:
    fields: Fields = {}
    whose: dict[str, str] = {}
    for metrics in every:
        evaluation = metrics.run.plan.evaluation
        for metric in metrics.metrics:
            name = metric.id_on(evaluation)
            if name in whose:
                raise MetricsCollide(name, (whose[name], evaluation))
            whose[name], fields[name] = evaluation, metric.fields
    return fields


def headline(each: RunMetrics) -> float | None:
    """Return the one number of a run; None: no sample was observed."""
    name = headline_of(each.run)
    return next(metric.estimate.value for metric in each.metrics if metric.name == name)


def _account(each: RunMetrics) -> Fields:
    plan = each.run.plan
    return {
        "kind": plan.kind,
        "plan": plan.number,
        "run_key": plan.run_key,
        "settings": json.loads(plan.settings),
        **({"asking": plan.asking.fields} if plan.asking else {}),
        "n_samples": plan.n_samples,
        "n_available": plan.n_available,
        **each.counts._asdict(),
        "is_complete": not each.run.missing,
    }
