"""Evaluations on the tournament's bank: free answers, or a choice among distractors."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pydantic import PositiveInt

from commands.errors import ConfigurationError
from commands.evaluating.likelihoods import PerplexityComparisonEvaluation
from commands.evaluating.rollout import RolloutEvaluation
from commands.evaluating.samples import Inference
from commands.evaluating.shipped.listed import ListedEvaluation, check_arguments, shuffle
from commands.evaluating.shipped.rows import choices_of, made_of, read_rows, text_of
from commands.importing.formats.rows import Fields
from commands.settings.sections import UserPath
from ledger.events.registration import Prompt
from projections.verdicts.parsers import holds_gold, words


def distractors_of(prompts: Sequence[Prompt], path: Path) -> Mapping[str, Sequence[str]]:
    """Return each prompt's wrong answers; other prompts in the file are ignored.

    Raises:
        ConfigurationError: The file is missing or wrong, lacks a prompt, or repeats an answer.
    """
    wrong = dict(made_of(read_rows([path]), _distractors).values())
    faults = [
        f"{path}: prompt {prompt.prompt_id!r} {why}"
        for prompt in prompts
        if (why := _fault(prompt, wrong.get(prompt.prompt_id, ())))
    ]
    if faults:
        raise ConfigurationError(faults)
    return wrong


def _distractors(fields: Fields) -> tuple[str, Sequence[str]]:
    return text_of("prompt_id", fields), choices_of("distractors", fields)[0]


def _fault(prompt: Prompt, distractors: Sequence[str]) -> str | None:
    if not distractors:
        return "has no distractors; write some, or leave its source out of `sources`"
    answers = [words(distractor) for distractor in (str(prompt.gold_answer), *distractors)]
    return "has the same answer twice" if len(set(answers)) < len(answers) else None


_ASIDE: Final = re.compile(r"\([^()]*\)")


def contains_answer(text: str, answer: str) -> bool:
    """Return whether a text contains the words of an answer, by the rule of verdicts/parsers.py.

    Words of the answer that stand in parentheses are optional.
    """
    return any(holds_gold(text, form) for form in (answer, _ASIDE.sub(" ", answer)))


_LEAD: Final = re.compile(r"\s*answer\s*:", re.IGNORECASE)


class BankRollout(ListedEvaluation[Prompt], RolloutEvaluation):
    """Free answers to the bank's prompts; an answer is right if it contains the gold answer."""

    @check_arguments
    def __init__(
        self,
        *,
        bank: Sequence[Prompt],
        sources: Sequence[str] = (),
        max_new_tokens: PositiveInt = 64,
    ) -> None:
        """Choose the prompts of some sources, or of all."""
        super().__init__(_with_gold(bank, sources))
        self._n_new = max_new_tokens

    def get(self, index: int) -> tuple[str, str]:
        """Return a prompt and its gold answer."""
        prompt = self.items[index]
        return prompt.text, str(prompt.gold_answer)

    def clean(self, y_hat: str) -> str:
        """Return the answer without a leading `Answer:` and a final full stop."""
        return _LEAD.sub("", y_hat, count=1).strip().removesuffix(".")

    def check(self, y: str, y_hat: str) -> bool:
        """Return whether the answer contains the gold answer's words."""
        return contains_answer(y_hat, y)

    def max_new_tokens(self, inference: Inference) -> int:  # noqa: ARG002  # the same for all
        """Return the largest length of an answer, in tokens."""
        return self._n_new


class BankChoices(ListedEvaluation[Prompt], PerplexityComparisonEvaluation):
    """A choice between the gold answer and the bank's distractors, after prompt and `Answer:`.

    Each continuation begins with the space: tokenizers join it to the next word.
    """

    @check_arguments
    def __init__(
        self,
        *,
        bank: Sequence[Prompt],
        folder: Path,
        sources: Sequence[str] = (),
        distractors: UserPath = Path("distractors.jsonl"),
        pmi: bool = False,
    ) -> None:
        """Choose the prompts of some sources, or of all, and read the file of wrong answers.

        With `pmi` log-likelihoods without the prompt are computed too, for the metric acc_pmi.
        """
        super().__init__(_with_gold(bank, sources))
        self.asks_unconditional = pmi
        self._wrong = distractors_of(self.items, folder / distractors)

    def get(self, index: int) -> tuple[str, Sequence[str], int]:
        """Return a prompt and its answers, in an order that depends on the prompt only."""
        prompt = self.items[index]
        gold = str(prompt.gold_answer)
        answers = shuffle([gold, *self._wrong[prompt.prompt_id]], prompt.text)
        return f"{prompt.text}\nAnswer:", [f" {answer}" for answer in answers], answers.index(gold)


def _with_gold(bank: Sequence[Prompt], sources: Sequence[str]) -> Mapping[str, Prompt]:
    """Return the prompts with a gold answer, of some sources or of all."""
    prompts = [prompt for prompt in bank if prompt.gold_answer]
    known = sorted({prompt.source for prompt in prompts})
    faults = [
        f"the bank has no prompt of source {source!r} with a gold answer; sources that have some:"
        f" {', '.join(map(repr, known)) or 'none'}"
        for source in sources
        if source not in known
    ]
    if faults:
        raise ConfigurationError(faults)
    return {
        prompt.prompt_id: prompt for prompt in prompts if not sources or prompt.source in sources
    }
