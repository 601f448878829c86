"""When two answers say the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.evaluating.shipped.bank import contains_answer
from projections.verdicts.parsers import holds_gold


@pytest.mark.parametrize(
    ("said", "gold"),
    [
        ("It is the AXILLARY  nerve!", "Axillary nerve"),
        ("47, XXY", "47,XXY"),
        ("Juxtaglomerular cells", "Juxtaglomerular (granular) cells"),
        ("the granular juxtaglomerular (granular) cells", "Juxtaglomerular (granular) cells"),
        ("\ufb01brin", "Fibrin"),
    ],
)
def test_case_punctuation_and_asides_tell_no_answers_apart(said: str, gold: str) -> None:
    """Nobody is wrong for a full stop, or for leaving an explanation out."""
    assert contains_answer(said, gold)


@pytest.mark.parametrize(
    ("said", "gold"),
    [("CAGE", "CAG"), ("nerve axillary", "Axillary nerve"), ("", "CAG"), ("?", "(R0)")],
)
def test_other_words_are_another_answer(said: str, gold: str) -> None:
    """Letters inside a longer word are not the word."""
    assert not contains_answer(said, gold)


@given(said=st.text(), wanted=st.text())
def test_what_contains_a_gold_answer_holds_it(said: str, wanted: str) -> None:
    """An evaluation's score and the metric `containment` tell words by one rule."""
    assert contains_answer(said, wanted) or not holds_gold(said, wanted)
    if "(" not in wanted:
        assert contains_answer(said, wanted) is bool(holds_gold(said, wanted))


@pytest.mark.parametrize(
    ("said", "gold"),
    [("beta_blocker", "beta blocker"), ("delivery of baby", "Delivery of the baby")],
)
def test_words_are_told_as_metrics_tell_them(said: str, gold: str) -> None:
    """What was drawn above may hold no article and no underscore."""
    assert contains_answer(said, gold)
