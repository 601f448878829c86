"""Filter generated answers, and compare them, as lm-evaluation-harness 0.4.13 does."""

import re
from collections.abc import Iterable
from string import digits, punctuation
from typing import assert_never

from commands.evaluating.shipped.task_files._settings import (
    FilterStep,
    MetricKeys,
    RegexFilter,
    RemoveWhitespace,
    TakeFirst,
)


def filtered(answer: str, steps: Iterable[FilterStep]) -> str:
    """Return what filters keep of an answer."""
    for step in steps:
        match step:
            case RegexFilter():
                answer = _found(answer, step)
            case RemoveWhitespace():
                answer = answer.strip()
            case TakeFirst():
                pass
            case _:
                assert_never(step)
    return answer


def _found(answer: str, step: RegexFilter) -> str:
    found = re.findall(step.regex_pattern, answer)
    if not found:
        return step.fallback
    try:
        chosen = found[step.group_select]
    except IndexError:
        return step.fallback
    if isinstance(chosen, tuple):  # of a pattern with groups: the first that matched
        chosen = next(filter(None, chosen), step.fallback)
    return str(chosen).strip()


def are_equal(expected: str, answer: str, rule: MetricKeys) -> bool:
    """Return whether two texts are equal, apart from what a rule ignores (exact_match)."""
    return _compared(expected, rule) == _compared(answer, rule)


def _compared(text: str, rule: MetricKeys) -> str:
    for pattern in rule.regexes_to_ignore:
        text = re.sub(pattern, "", text)
    if rule.ignore_case:
        text = text.lower()
    dropped = (punctuation if rule.ignore_punctuation else "") + (
        digits if rule.ignore_numbers else ""
    )
    return text.translate(str.maketrans("", "", dropped))
