"""A job of `Evaluator`: its folder, its configuration, what it evaluates, and where it reports."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from commands.errors import ConfigurationError, fault_of_pydantic
from commands.evaluating.evaluation import Evaluation
from commands.settings.schema import GenerationSection, PromptsSection
from commands.settings.sections import EvaluationOptions, EvaluationSection, Section
from ledger.storage.files import write_whole
from projections.artifacts.evaluations import GROUP

_Section = TypeVar("_Section", bound=BaseModel)


@dataclass(frozen=True)
class ExecutionSpec:
    """A job's name and folder: <root>/results/<project>/<group>/<name>/."""

    name: str
    project: str = "general"
    group: str = GROUP
    root: Path = Path()

    def __post_init__(self) -> None:
        """Take a text as a path, too."""
        object.__setattr__(self, "root", Path(self.root))

    @property
    def folder(self) -> Path:
        """The folder of the job's ledger and results.json."""
        return self.root / "results" / self.project / self.group / self.name


class EvaluatorConfig(Section):
    """The tables of an evaluation job without a tournament."""

    generation: GenerationSection = GenerationSection()
    prompts: PromptsSection | None = None  # the bank, for evaluations on it
    evaluations: tuple[EvaluationSection, ...] = ()


def parse_config(tables: Mapping[str, Any]) -> EvaluatorConfig:
    """Validate the tables of a configuration.

    Raises:
        ConfigurationError: Keys are unknown or values out of range; all faults are listed.
    """
    return _checked(EvaluatorConfig, tables)


def _checked(section: type[_Section], tables: Mapping[str, Any]) -> _Section:
    try:
        return section.model_validate(tables)
    except ValidationError as error:
        faults = [
            f"{'.'.join(map(str, fault['loc']))} is {fault['input']!r}: {fault_of_pydantic(fault)}"
            for fault in error.errors()
        ]
        raise ConfigurationError(faults) from error


def read_config(path: Path) -> EvaluatorConfig:
    """Read the configuration that a job was started with.

    Raises:
        ConfigurationError: The file is missing, unreadable or wrong.
    """
    if not path.exists():
        raise ConfigurationError([f"{path} does not exist; pass runtime_cfg to start the job"])
    try:
        tables = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        fault = f"{path} cannot be read: {error}; pass runtime_cfg to replace it"
        raise ConfigurationError([fault]) from error
    return parse_config(tables)


def write_config(path: Path, config: EvaluatorConfig) -> None:
    """Write what a configuration sets, for resuming the job.

    Raises:
        CannotWrite: The file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    content = config.model_dump_json(indent=2, exclude_unset=True)
    write_whole(path, [content.encode(), b"\n"])


EvaluationArgument: TypeAlias = Evaluation | tuple[Evaluation, Mapping[str, Any]]
"""An evaluation, alone or with options by the names of `EvaluationOptions`."""


def requests_of(
    arguments: Iterable[EvaluationArgument],
) -> Sequence[tuple[Evaluation, EvaluationOptions]]:
    """Return evaluations with their options.

    Raises:
        ConfigurationError: An argument is no evaluation, an option is wrong, or two evaluations
            have the same name.
    """
    requests = [_request(argument) for argument in arguments]
    names = [evaluation.id for evaluation, _ in requests]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigurationError([f"several evaluations are called {', '.join(twice)}"])
    return requests


def _request(argument: object) -> tuple[Evaluation, EvaluationOptions]:
    evaluation, options = argument if isinstance(argument, tuple) else (argument, {})
    if not isinstance(evaluation, Evaluation):
        fault = f"{evaluation!r} is no evaluation; make one of its class, as in Micrograms()"
        raise ConfigurationError([fault])
    return evaluation, options_of(options)


def options_of(chosen: Mapping[str, Any]) -> EvaluationOptions:
    """Return checked options.

    Raises:
        ConfigurationError: A name is unknown, or a value out of range.
    """
    return _checked(EvaluationOptions, chosen)


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
