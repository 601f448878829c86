"""From [[evaluations]] to evaluations: which class is meant, and making one of it."""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from inspect import Parameter, isabstract, signature
from pathlib import Path
from types import MappingProxyType
from typing import Final

from pydantic import ValidationError

from commands.errors import ConfigurationError
from commands.evaluating.evaluation import Evaluation
from commands.evaluating.shipped.bank import BankChoices, BankRollout
from commands.evaluating.shipped.multiple_choice import (
    MedMcqaChoices,
    MedMcqaRollout,
    MedQaChoices,
    MedQaRollout,
    MmluChoices,
    MmluRollout,
)
from commands.evaluating.shipped.synthetic import Composition, Copying
from commands.evaluating.shipped.texts import Blimp, TextPerplexity
from commands.evaluating.user_code import blaming, class_in_file, class_in_module
from commands.settings.sections import EvaluationSection
from ledger.events.registration import Prompt

SHIPPED: Final[Mapping[str, type[Evaluation]]] = MappingProxyType(
    {
        "bank-rollout": BankRollout,
        "bank-choices": BankChoices,
        "text-perplexity": TextPerplexity,
        "copying": Copying,
        "composition": Composition,
        "mmlu-choices": MmluChoices,
        "mmlu-rollout": MmluRollout,
        "medmcqa-choices": MedMcqaChoices,
        "medmcqa-rollout": MedMcqaRollout,
        "medqa-choices": MedQaChoices,
        "medqa-rollout": MedQaRollout,
        "blimp": Blimp,
    }
)


GROUP: Final = "tourney.evaluations"
"""The group of entry points by which a package offers evaluations."""


def evaluation_of(section: EvaluationSection, folder: Path, bank: Sequence[Prompt]) -> Evaluation:
    """Make the evaluation that a table names.

    A constructor is given the table's parameters, and, where it asks for them by these names,
    `name` (the table's id), `folder` (of the settings) and `bank` (the tournament's prompts).

    Args:
        section: The table.
        folder: What relative paths start from.
        bank: The tournament's prompts.

    Raises:
        ConfigurationError: Nothing is called so, what is called so is no evaluation, it refuses
            the parameters, files that it reads are missing or wrong, or its name is not the id.
        EvaluationFault: Its code fails.
    """
    with blaming(section.id, f"using {section.uses!r}"):
        kind = _class_of(section, folder)
        offered = {"name": section.id, "folder": folder, "bank": bank}
        evaluation = _made(kind, section, offered)
        if evaluation.name != section.id:
            raise _fault(
                section,
                f"its class calls it {evaluation.name!r}; give the table that id, or take the name"
                " in the constructor",
            )
    return evaluation


def _class_of(section: EvaluationSection, folder: Path) -> type[Evaluation]:
    found = _found(section, folder)
    if not (isinstance(found, type) and issubclass(found, Evaluation)):
        raise _fault(
            section,
            f"uses {section.uses!r}, which is no subclass of RolloutEvaluation, EncodingEvaluation,"
            " PerplexityEvaluation or PerplexityComparisonEvaluation",
        )
    if isabstract(found):
        lacking = ", ".join(sorted(found.__abstractmethods__))
        raise _fault(section, f"uses {section.uses!r}, which does not define {lacking}")
    return found


def _found(section: EvaluationSection, folder: Path) -> object:
    place, colon, name = section.uses.rpartition(":")
    if colon:
        is_file = place.endswith(".py")
        return class_in_file(folder / place, name) if is_file else class_in_module(place, name)
    if section.uses in SHIPPED:
        return SHIPPED[section.uses]
    offered = {each.name: each for each in entry_points(group=GROUP)}
    if section.uses in offered:
        return offered[section.uses].load()
    raise _fault(section, f"nothing is called {section.uses!r}{_meant(section.uses, offered)}")


def _meant(uses: str, offered: Mapping[str, EntryPoint]) -> str:
    known = sorted({*SHIPPED, *offered})
    close = difflib.get_close_matches(uses, known, n=1)
    there = f"; there are {', '.join(known)}, and one's own as file.py:Class or module:Class"
    return f"; did you mean {close[0]!r}?" if close else there


def _made(
    kind: type[Evaluation], section: EvaluationSection, offered: Mapping[str, object]
) -> Evaluation:
    takes = signature(kind).parameters
    faults = [*_refused(takes, section.parameters, offered)]
    if faults:
        raise ConfigurationError([f"evaluation {section.id!r}: {each}" for each in faults])
    given = {name: value for name, value in offered.items() if name in takes}
    make: Callable[..., Evaluation] = kind  # what it takes was looked at just now
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


def _refused(
    takes: Mapping[str, Parameter], parameters: Iterable[str], offered: Mapping[str, object]
) -> Iterable[str]:
    """Say which parameters a constructor does not take, and which it lacks."""
    own = {name: each for name, each in takes.items() if name not in offered}
    takes_any = any(each.kind is Parameter.VAR_KEYWORD for each in own.values())
    for name in parameters:
        if name in offered:
            yield f"parameters.{name} is given by the table and the tournament; leave it out"
        elif name not in own and not takes_any:
            yield f"unknown parameter {name!r}; it takes {', '.join(own) or 'none'}"
    for name, each in own.items():
        is_one = each.kind in {Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD}
        if is_one and each.default is Parameter.empty and name not in parameters:
            yield f"parameter {name!r} is missing"


def _fault(section: EvaluationSection, why: str) -> ConfigurationError:
    return ConfigurationError([f"evaluation {section.id!r}: {why}"])
