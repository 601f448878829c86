"""Wrong answers that were written for a bank's prompts: one JSON object a line."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from commands.errors import ConfigurationError
from commands.evaluations.shipped.lines import read_lines
from ledger.events.registration import Prompt
from ledger.identity import PromptId
from projections.verdicts.parsers import words


class _Row(msgspec.Struct):
    prompt_id: PromptId
    distractors: Annotated[tuple[str, ...], Meta(min_length=1)]


def distractors_of(prompts: Sequence[Prompt], path: Path) -> Mapping[PromptId, tuple[str, ...]]:
    """Return the wrong answers of each prompt; a file may hold those of others, too.

    Raises:
        ConfigurationError: The file is missing or wrong, or of a prompt it has none, or an answer
            twice.
    """
    found = {row.prompt_id: row.distractors for row in read_lines(path, _Row).values()}
    faults = [
        f"{path}: prompt {prompt.prompt_id!r} {why}"
        for prompt in prompts
        if (why := _fault(prompt, found.get(prompt.prompt_id, ())))
    ]
    if faults:
        raise ConfigurationError(faults)
    return {prompt.prompt_id: found[prompt.prompt_id] for prompt in prompts}


def _fault(prompt: Prompt, distractors: Sequence[str]) -> str | None:
    if not distractors:
        return "has no distractors there; write some, or name its source in no `sources`"
    answers = [words(each) for each in (str(prompt.gold_answer), *distractors)]
    return "has an answer twice there" if len(set(answers)) < len(answers) else None
