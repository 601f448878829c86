"""Find the class that an [[evaluations]] table uses, and make the evaluation from it."""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from inspect import Parameter, isabstract, signature
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from commands.errors import ConfigurationError
from commands.evaluating.evaluation import Evaluation
from commands.evaluating.shipped import multiple_choice
from commands.evaluating.shipped.bank import BankChoices, BankRollout
from commands.evaluating.shipped.synthetic import Composition, Copying
from commands.evaluating.shipped.texts import Blimp, TextPerplexity
from commands.evaluating.user_code import blame_evaluation, class_in_file, class_in_module
from commands.settings.sections import EvaluationSection
from ledger.events.registration import Prompt

SHIPPED: Final[Mapping[str, type[Evaluation]]] = {
    "bank-rollout": BankRollout,
    "bank-choices": BankChoices,
    "text-perplexity": TextPerplexity,
    "copying": Copying,
    "composition": Composition,
    "mmlu-choices": multiple_choice.MmluChoices,
    "mmlu-rollout": multiple_choice.MmluRollout,
    "medmcqa-choices": multiple_choice.MedMcqaChoices,
    "medmcqa-rollout": multiple_choice.MedMcqaRollout,
    "medqa-choices": multiple_choice.MedQaChoices,
    "medqa-rollout": multiple_choice.MedQaRollout,
    "blimp": Blimp,
}

GROUP: Final = "tourney.evaluations"
"""The entry-point group through which other packages offer evaluations."""


def evaluation_of(section: EvaluationSection, folder: Path, bank: Sequence[Prompt]) -> Evaluation:
    """Make the evaluation that a table describes; the table's id is its name.

    Raises:
        ConfigurationError: As `unnamed_evaluation`.
        EvaluationFault: The evaluation's code fails.
    """
    return unnamed_evaluation(section, folder, bank).called(section.id)


def unnamed_evaluation(
    section: EvaluationSection, folder: Path, bank: Sequence[Prompt]
) -> Evaluation:
    """Make the evaluation that a table describes, under the name that its class gives it.

    The constructor gets the table's parameters and, if it has parameters of these names, `folder`
    (of the settings) and `bank` (the tournament's prompts). Relative paths start from the folder.

    Raises:
        ConfigurationError: No evaluation has the name, the class is not an evaluation, it rejects
            the parameters, or a file is missing or wrong.
        EvaluationFault: The evaluation's code fails.
    """
    with blame_evaluation(section.id, f"using {section.uses!r}"):
        kind = _class_of(section, folder)
        return _make(kind, section, {"folder": folder, "bank": bank})


def _class_of(section: EvaluationSection, folder: Path) -> type[Evaluation]:
    found = _find(section, folder)
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
    place, colon, name = section.uses.rpartition(":")
    if colon:
        is_file = place.endswith(".py")
        return class_in_file(folder / place, name) if is_file else class_in_module(place, name)
    if section.uses in SHIPPED:
        return SHIPPED[section.uses]
    offered = {each.name: each for each in entry_points(group=GROUP)}
    if section.uses in offered:
        return offered[section.uses].load()
    known = sorted({*SHIPPED, *offered})
    choices = f"choose one of {', '.join(known)}, or your own as file.py:Class or module:Class"
    close = difflib.get_close_matches(section.uses, known, n=1)
    suggestion = f"did you mean {close[0]!r}?" if close else choices
    raise _fault(section, f"no evaluation is called {section.uses!r}; {suggestion}")


def _make(
    kind: type[Evaluation], section: EvaluationSection, offered: Mapping[str, object]
) -> Evaluation:
    takes = signature(kind).parameters
    faults = [*_parameter_faults(takes, section.parameters, offered)]
    if faults:
        raise ConfigurationError([f"evaluation {section.id!r}: {each}" for each in faults])
    given = {name: value for name, value in offered.items() if name in takes}
    make: Callable[..., Evaluation] = kind  # its parameters were checked just now
    try:
        return make(**given, **section.parameters)
    except ValidationError as error:
        raise ConfigurationError(
            [
                f"evaluation {section.id!r}: parameters.{'.'.join(map(str, each['loc']))} is"
                f" {each['input']!r}: {each['msg']}"
                for each in error.errors()
            ]
        ) from error


def _parameter_faults(
    takes: Mapping[str, Parameter], parameters: Iterable[str], offered: Mapping[str, object]
) -> Iterable[str]:
    """Yield the parameters that the constructor does not take, and those that are missing."""
    own = {name: each for name, each in takes.items() if name not in offered}
    takes_any = any(each.kind is Parameter.VAR_KEYWORD for each in own.values())
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
