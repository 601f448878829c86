"""Make the evaluations of [[evaluations]] tables, and score recorded samples again with them."""

import difflib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import EntryPoint, entry_points
from inspect import Parameter, isabstract, signature
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from commands.errors import ConfigurationError, MissingExtra, fault_of_pydantic
from commands.evaluating.evaluation import Evaluation, rescored
from commands.evaluating.shipped.bank import BankChoices, BankRollout
from commands.evaluating.shipped.listed import Blimp, Composition, Copying, TextPerplexity
from commands.evaluating.shipped.questions import ChoicesOfFile, RolloutOfFile
from commands.evaluating.user_code import blame_evaluation, class_in_file, class_in_module
from commands.importing.bank import OpenDataset, bank_named
from commands.settings.reader import read_settings
from commands.settings.schema import Settings
from commands.settings.sections import EvaluationSection
from ledger.events.registration import Prompt
from ledger.identity import StreamId
from projections.evaluations.state import EvaluationRun

SHIPPED: Final[Mapping[str, type[Evaluation]]] = {
    "bank-rollout": BankRollout,
    "bank-choices": BankChoices,
    "text-perplexity": TextPerplexity,
    "copying": Copying,
    "composition": Composition,
    "choices": ChoicesOfFile,
    "rollout": RolloutOfFile,
    "blimp": Blimp,
}

STANDALONE: Final = ("composition", "copying")
"""Those shipped ones that need neither parameters nor a tournament's bank."""

GROUP: Final = "tourney.evaluations"
"""The entry-point group through which other packages offer evaluations."""


class UnknownTask(ConfigurationError):
    """lm-evaluation-harness has no task, group or tag of a name."""


ReadTasks: TypeAlias = Callable[[EvaluationSection, Path], Iterable[tuple[str, Evaluation]]]
"""Makes the evaluations of a task, group or tag of lm-evaluation-harness, or of a YAML file.

Before each stands what follows the name of its table.
"""


class Readers(NamedTuple):
    """What reads data and tasks; the packages for it are imported when it is called."""

    open_dataset: OpenDataset
    read_tasks: ReadTasks


class EvaluationSources(NamedTuple):
    """What evaluations are made from besides their table."""

    folder: Path  # of the settings, where relative paths start
    bank: Sequence[Prompt]  # the tournament's prompts
    readers: Readers

    @property
    def offered(self) -> Mapping[str, object]:
        """What a constructor gets that has a parameter of the name."""
        return {"folder": self.folder, "bank": self.bank}


def table_evaluations(
    section: EvaluationSection, sources: EvaluationSources, *, is_named: bool = True
) -> tuple[Evaluation, ...]:
    """Make the evaluations that a table describes; its id is their name, or how it begins.

    There are several if the items have subjects, or if a group of lm-evaluation-harness is used.
    Where the table is not named by a person, a class's own name takes the place of the id. The
    constructor gets the table's parameters and, if it has parameters of these names, the sources.

    Raises:
        ConfigurationError: No evaluation has the name, the class is not an evaluation, it rejects
            the parameters, or a file is missing or wrong.
        EvaluationFault: The evaluation's code fails.
    """
    with blame_evaluation(section.id, f"using {section.uses!r}"), _told_parameters(section):
        name, found = section.id, None
        if not _is_task_file(section.uses):
            found = _find(section, sources.folder)
        if found is None:
            made = _tasks(section, sources)
        else:
            whole = _make(_class_of(section, found), section, sources.offered)
            made = [("", whole), *whole.subject_evaluations(name).items()]
            name = name if is_named else whole.id
        return tuple(each.called(f"{name}.{suffix}" if suffix else name) for suffix, each in made)


def _is_task_file(uses: str) -> bool:
    return Path(uses).suffix in {".yaml", ".yml"}


def _tasks(
    section: EvaluationSection, sources: EvaluationSources
) -> Sequence[tuple[str, Evaluation]]:
    """Return the evaluations of a task, group or tag of lm-evaluation-harness, or of a file.

    Raises:
        MissingExtra: It is a file, and lm-evaluation-harness is not installed.
        ConfigurationError: Nothing has the name.
    """
    if not _is_task_file(section.uses) and (close := _close_to(section.uses)):
        # at once: to look among all tasks takes seconds, and none of theirs is that close to ours
        raise _unknown(section, f"did you mean {close!r}?")
    try:
        return [*sources.readers.read_tasks(section, sources.folder)]
    except MissingExtra as missing:
        if _is_task_file(section.uses):
            raise
        also = f"if it is a task of lm-evaluation-harness: {missing}"
        raise _unknown(section, f"{_choices()}; {also}") from None
    except UnknownTask:
        also = "or a task, group or tag of lm-evaluation-harness, which has none of this name"
        raise _unknown(section, f"{_choices()}, {also}") from None


@contextmanager
def _told_parameters(section: EvaluationSection) -> Iterator[None]:
    """Turn pydantic's errors of parameters into one that names them."""
    try:
        yield
    except ValidationError as error:
        faults = map(_parameter_fault, error.errors())
        raise ConfigurationError(
            [f"evaluation {section.id!r}: {fault}" for fault in faults]
        ) from error


def _parameter_fault(error: ErrorDetails) -> str:
    name = ".".join(map(str, error["loc"]))
    if error["type"] == "missing":
        return f"parameter {name!r} is missing"
    return f"parameters.{name} is {error['input']!r}: {fault_of_pydantic(error)}"


def _class_of(section: EvaluationSection, found: object) -> type[Evaluation]:
    if not (isinstance(found, type) and issubclass(found, Evaluation)):
        raise _fault(
            section,
            f"uses {section.uses!r}, which is not a subclass of RolloutEvaluation,"
            " EncodingEvaluation, PerplexityEvaluation or PerplexityComparisonEvaluation",
        )
    if isabstract(found):
        lacking = ", ".join(sorted(found.__abstractmethods__))
        raise _fault(section, f"uses {section.uses!r}, which does not define {lacking}")
    return found


def _find(section: EvaluationSection, folder: Path) -> object:
    """Return what a name of ours or of another package stands for; None: it is none of them."""
    place, colon, name = section.uses.rpartition(":")
    if colon:
        is_file = place.endswith(".py")
        return class_in_file(folder / place, name) if is_file else class_in_module(place, name)
    if section.uses in SHIPPED:
        return SHIPPED[section.uses]
    offered = _offered()
    return offered[section.uses].load() if section.uses in offered else None


def _offered() -> Mapping[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def _close_to(name: str) -> str | None:
    close = difflib.get_close_matches(name, {*SHIPPED, *_offered()}, n=1, cutoff=0.85)
    return close[0] if close else None


def _choices() -> str:
    known = sorted({*SHIPPED, *_offered()})
    own = "your own as file.py:Class or module:Class"
    theirs = "a task of lm-evaluation-harness such as hellaswag or mmlu.yaml"
    return f"choose one of {', '.join(known)}, {own}, {theirs}"


def _unknown(section: EvaluationSection, remedy: str) -> ConfigurationError:
    return _fault(section, f"no evaluation is called {section.uses!r}; {remedy}")


def _make(
    kind: type[Evaluation], section: EvaluationSection, offered: Mapping[str, object]
) -> Evaluation:
    takes = signature(kind).parameters
    faults = [*_parameter_faults(takes, section.parameters, offered)]
    if faults:
        raise ConfigurationError([f"evaluation {section.id!r}: {fault}" for fault in faults])
    given = {name: value for name, value in offered.items() if name in takes}
    make: Callable[..., Evaluation] = kind  # its parameters were checked just now
    return make(**given, **section.parameters)


def _parameter_faults(
    takes: Mapping[str, Parameter], parameters: Iterable[str], offered: Mapping[str, object]
) -> Iterable[str]:
    """Yield the parameters that the constructor does not take, and those that are missing."""
    own = {name: each for name, each in takes.items() if name not in offered}
    takes_any = any(parameter.kind is Parameter.VAR_KEYWORD for parameter in own.values())
    for name in parameters:
        if name in offered:
            yield f"parameters.{name} is filled in by tourney; leave it out"
        elif name not in own and not takes_any:
            yield f"unknown parameter {name!r}; it takes {', '.join(own) or 'none'}"
    for name, each in own.items():
        is_one = each.kind in {Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD}
        if is_one and each.default is Parameter.empty and name not in parameters:
            yield f"parameter {name!r} is missing"


def _fault(section: EvaluationSection, why: str) -> ConfigurationError:
    return ConfigurationError([f"evaluation {section.id!r}: {why}"])


def rescore(
    runs: Sequence[EvaluationRun], config: Path, readers: Readers
) -> tuple[EvaluationRun, ...]:
    """Return runs with their samples scored again, but for those of lm-evaluation-harness.

    Raises:
        ConfigurationError: The settings file is missing, or lacks an evaluation of a run.
        EvaluationFault: An evaluation's own code fails.
    """
    if not config.exists():
        alone = "weights evaluated by themselves are scored again by the same `tourney evaluate`"
        raise ConfigurationError([f"--rescore needs {config}, with its [[evaluations]]; {alone}"])
    needed = {run.plan.evaluation for run in runs if not run.plan.task}
    known = _configured(needed, read_settings(config, os.environ), config.parent, readers)
    if lacking := needed - known.keys():
        names = ", ".join(sorted(lacking))
        fault = f"--rescore: {config} has no [[evaluations]] with id {names}"
        raise ConfigurationError([f"{fault}; add them, or choose others with --evaluation"])
    return tuple(
        run if run.plan.task else _rescored_run(run, known[run.plan.evaluation]) for run in runs
    )


def rescore_changed(
    runs: Sequence[EvaluationRun], tournament: StreamId, config: Path, readers: Readers
) -> Iterator[EvaluationRun]:
    """Yield runs, those scored again whose evaluation's code changed since.

    A run stays as it was recorded if the settings file is not there, is another tournament's, or
    has no such evaluation.

    Raises:
        ConfigurationError: The settings file is wrong.
        EvaluationFault: An evaluation's own code fails.
    """
    known: Mapping[str, Evaluation] = {}
    scored = {run.plan.evaluation for run in runs if run.plan.scorer and not run.plan.task}
    if scored and config.exists():
        settings = read_settings(config, os.environ)
        is_own = settings.tournament.id == tournament
        known = _configured(scored, settings, config.parent, readers) if is_own else {}
    for run in runs:
        evaluation = known.get(run.plan.evaluation)
        is_changed = evaluation is not None and evaluation.scorer != run.plan.scorer
        is_ours = is_changed and not run.plan.task
        yield _rescored_run(run, evaluation) if evaluation and is_ours else run


def _configured(
    names: Collection[str], settings: Settings, folder: Path, readers: Readers
) -> Mapping[str, Evaluation]:
    """Return the evaluations of some names that the settings have, and their parts."""
    sections = [
        section
        for section in settings.evaluations
        if any(name == section.id or name.startswith(f"{section.id}.") for name in names)
    ]
    named = settings.prompts.bank
    bank = bank_named(named, folder, readers.open_dataset) if sections else ()
    sources = EvaluationSources(folder, bank, readers)
    made = (
        evaluation for section in sections for evaluation in table_evaluations(section, sources)
    )
    return {evaluation.id: evaluation for evaluation in made}


def _rescored_run(run: EvaluationRun, evaluation: Evaluation) -> EvaluationRun:
    again = rescored(evaluation, run.observed)
    return run.scored_as(sample.scored for sample in again if sample.scored)
