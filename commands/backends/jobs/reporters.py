"""Report metrics where a training is watched: in TensorBoard, or in Weights & Biases.

Each is told by its own client, which must be installed.
"""

from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Final, Literal, TypeAlias, get_args

from commands.backends.jobs.job import ExecutionSpec
from commands.errors import ConfigurationError

ReportTarget: TypeAlias = Literal["tensorboard", "wandb"]
Reporter: TypeAlias = Callable[[int, Mapping[str, float]], None]
"""Shows metrics, by name, after so many steps of a training."""

_STEP: Final = "train/global_step"  # the axis that transformers' Trainer gives a run of W&B


def reporter_to(target: str, spec: ExecutionSpec) -> Reporter:
    """Return what reports the metrics of a job.

    Raises:
        ConfigurationError: There is no such target, or its client is not installed.
    """
    if target not in _REPORTERS:
        known = ", ".join(map(repr, get_args(ReportTarget)))
        raise ConfigurationError([f"report_to has {target!r}; choose of {known}"])
    if find_spec(target) is None:
        fault = f"report_to has {target!r}, which is not installed: pip install {target}"
        raise ConfigurationError([fault])
    return partial(_REPORTERS[target], spec)


def _to_tensorboard(spec: ExecutionSpec, step: int, values: Mapping[str, float]) -> None:
    """Add metrics to the job's folder `tensorboard`."""
    module = import_module("torch.utils.tensorboard")
    with closing(module.SummaryWriter(str(spec.folder / "tensorboard"))) as writer:
        for name, value in values.items():
            writer.add_scalar(name, value, step)


def _to_wandb(spec: ExecutionSpec, step: int, values: Mapping[str, float]) -> None:
    """Add metrics to the run that the training reports to, or else to one of the job."""
    wandb = import_module("wandb")
    if wandb.run is None:
        run = wandb.init(project=spec.project, group=spec.group, name=spec.name)
        run.define_metric("*", step_metric=_STEP)
    wandb.run.log({**values, _STEP: step})


_REPORTERS: Final[Mapping[str, Callable[[ExecutionSpec, int, Mapping[str, float]], None]]] = {
    "tensorboard": _to_tensorboard,
    "wandb": _to_wandb,
}
