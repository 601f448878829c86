"""Filters and exact_match, as lm-evaluation-harness applies them."""

import pytest

from commands.evaluating.shipped.task_files._answers import are_equal, filtered
from commands.evaluating.shipped.task_files._settings import (
    MetricKeys,
    RegexFilter,
    RemoveWhitespace,
    TakeFirst,
)


@pytest.mark.parametrize(
    ("answer", "pattern", "place", "kept"),
    [
        ("so #### 12 then #### 13", r"#### (\d+)", 0, "12"),
        ("so #### 12 then #### 13", r"#### (\d+)", -1, "13"),
        ("$5 or 7", r"(\$\d)|(\d)", -1, "7"),
        ("nothing", r"(\d+)", 0, "[invalid]"),
        ("1", r"(\d+)", 3, "[invalid]"),
        ("a", r"(b?)(c?)", 0, "[invalid]"),
    ],
)
def test_a_pattern_keeps_what_it_finds(answer: str, pattern: str, place: int, kept: str) -> None:
    """Of several groups the first that matched."""
    step = RegexFilter(function="regex", regex_pattern=pattern, group_select=place)

    assert filtered(answer, [step, TakeFirst(function="take_first")]) == kept


def test_spaces_are_stripped() -> None:
    """Answers begin with one."""
    assert filtered(" Paris\n", [RemoveWhitespace(function="remove_whitespace")]) == "Paris"


@pytest.mark.parametrize(
    ("rule", "one", "other"),
    [
        ({"ignore_case": True}, "Paris", "PARIS"),
        ({"ignore_punctuation": True}, "Paris", "Par-is."),
        ({"ignore_numbers": True}, "Paris", "Paris 12"[:5]),
        ({"ignore_numbers": True}, "Paris", "1Paris2"),
        ({"regexes_to_ignore": [",", r"\$"]}, "1000", "$1,000"),
    ],
)
def test_a_rule_says_what_is_ignored(rule: dict[str, object], one: str, other: str) -> None:
    """Without it the texts differ, unless they are the same."""
    chosen = MetricKeys.model_validate({"metric": "exact_match", **rule})

    assert are_equal(one, other, chosen)
    assert are_equal(one, other, MetricKeys(metric="exact_match")) is (one == other)
    assert not are_equal("London", other, chosen)
