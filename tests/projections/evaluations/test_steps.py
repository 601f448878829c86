"""What the labels of checkpoints say."""

import pytest

from projections.evaluations.steps import NumberedLabel, numbered_label


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("olmo_step_50", NumberedLabel("olmo", 50)),
        ("out/checkpoint-60", NumberedLabel("out", 60)),
        ("run-global_step7", NumberedLabel("run", 7)),
        ("out/checkpoint-60 [turns: Be brief.]", NumberedLabel("out [turns: Be brief.]", 60)),
        ("step_50", NumberedLabel("", 50)),
        ("base", None),
        ("step_50_merged", None),
    ],
)
def test_a_label_may_name_a_step(label: str, expected: NumberedLabel | None) -> None:
    """As trainers call their checkpoints."""
    assert numbered_label(label) == expected
