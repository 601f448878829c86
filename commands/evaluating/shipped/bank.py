"""Evaluations on the tournament's own bank: its prompts that have a gold answer."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta
from pydantic import PositiveInt

from commands.errors import ConfigurationError
from commands.evaluating.comparison import PerplexityComparisonEvaluation
from commands.evaluating.rollout import RolloutEvaluation
from commands.evaluating.samples import Inference
from commands.evaluating.shipped._items import ListedEvaluation, checked, read_lines, shuffled
from ledger.events.registration import Prompt
from ledger.identity import PromptId
from projections.verdicts.parsers import holds_gold, words


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


_ASIDE: Final = re.compile(r"\([^()]*\)")


def holds(text: str, wanted: str) -> bool:
    """Say whether a text has the words of a wanted one, as verdicts/parsers.py finds them.

    What the wanted text has in parentheses may be left out.
    """
    return any(holds_gold(text, form) for form in (wanted, _ASIDE.sub(" ", wanted)))


_LEAD: Final = re.compile(r"\s*answer\s*:", re.IGNORECASE)


class BankRollout(ListedEvaluation[Prompt], RolloutEvaluation):
    """Prompts are answered freely; an answer is right that has the gold answer's words in it."""

    @checked
    def __init__(
        self,
        *,
        name: str,
        bank: Sequence[Prompt],
        sources: Sequence[str] = (),
        max_new_tokens: PositiveInt = 64,
    ) -> None:
        """Take the prompts of some sources, or of all."""
        super().__init__(name, _with_gold(bank, sources))
        self._n_new = max_new_tokens

    def get(self, index: int) -> tuple[str, str]:
        """Return a prompt and its gold answer."""
        prompt = self.items[index]
        return prompt.text, str(prompt.gold_answer)

    def clean(self, y_hat: str) -> str:
        """Return the answer's text, without `Answer:` before it or a full stop behind."""
        return _LEAD.sub("", y_hat, count=1).strip().removesuffix(".")

    def check(self, y: str, y_hat: str) -> bool:
        """Say whether the gold answer's words stand in the answer."""
        return holds(y_hat, y)

    def max_new_tokens(self, inference: Inference) -> int:  # noqa: ARG002  # the same for all
        """Return how long an answer may be."""
        return self._n_new


class BankChoices(ListedEvaluation[Prompt], PerplexityComparisonEvaluation):
    """The gold answer and distractors that were written for the bank, behind prompt and `Answer:`.

    The space belongs to the answers: tokenizers join it to the word behind it, and a prefix that
    ended in one would end in a token that no text goes on from.
    """

    @checked
    def __init__(
        self,
        *,
        name: str,
        bank: Sequence[Prompt],
        folder: Path,
        sources: Sequence[str] = (),
        distractors: Path = Path("distractors.jsonl"),
        pmi: bool = False,
    ) -> None:
        """Take the prompts of some sources, or of all, with a file of wrong answers.

        With pmi the answers are weighed behind no prompt too, which the metric acc_pmi needs.
        """
        super().__init__(name, _with_gold(bank, sources))
        self.asks_unconditional = pmi
        self._wrong = distractors_of(self.items, folder / distractors)

    def get(self, index: int) -> tuple[str, Sequence[str], int]:
        """Return a prompt with its answers, in an order that the prompt determines."""
        prompt = self.items[index]
        gold = str(prompt.gold_answer)
        answers = shuffled([gold, *self._wrong[prompt.prompt_id]], prompt.text)
        return f"{prompt.text}\nAnswer:", [f" {each}" for each in answers], answers.index(gold)


def _with_gold(bank: Sequence[Prompt], sources: Sequence[str]) -> Mapping[str, Prompt]:
    """Return the prompts that have a gold answer, of some sources, or of all.

    Raises:
        ConfigurationError: A source has none.
    """
    prompts = [prompt for prompt in bank if prompt.gold_answer]
    known = sorted({prompt.source for prompt in prompts})
    faults = [
        f"the bank has no prompt of source {source!r} with a gold answer; its sources that have"
        f" one: {', '.join(map(repr, known)) or 'none'}"
        for source in sources
        if source not in known
    ]
    if faults:
        raise ConfigurationError(faults)
    return {each.prompt_id: each for each in prompts if not sources or each.source in sources}
