"""[[evaluations]]: which evaluation, and on what terms."""

import pytest
from pydantic import ValidationError

from commands.settings.sections import EvaluationOptions, EvaluationSection


def test_a_table_says_which_evaluation_and_on_what_terms() -> None:
    """Terms are the user's; parameters are the evaluation's own."""
    section = EvaluationSection(
        id="copying", uses="copying", length=7, temperature=0.5, parameters={"n_words": 3}
    )

    assert section.terms == EvaluationOptions(length=7, temperature=0.5)
    assert type(section.terms) is EvaluationOptions


@pytest.mark.parametrize("wrong", [{"id": "a b"}, {"uses": ""}, {"length": 0}])
def test_a_label_is_a_word_and_a_length_a_number_of_items(wrong: dict[str, object]) -> None:
    """Labels are typed behind options, and a run on no items measures nothing."""
    table = {"id": "copying", "uses": "copying", **wrong}

    with pytest.raises(ValidationError) as caught:
        EvaluationSection.model_validate(table)

    assert [error["loc"] for error in caught.value.errors()] == [tuple(wrong)]
