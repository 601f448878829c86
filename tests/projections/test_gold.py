"""Whether a response contains its prompt's gold answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.verdicts.parsers import holds_gold, is_gold


@pytest.mark.parametrize(
    ("response", "gold"),
    [
        ("It is the ASPIRIN.", "Aspirin"),
        ("Give clopidogrel/aspirin today", "aspirin"),
        ("a beta blocker", "beta-blocker"),
        ("delivery of baby, and the placenta", "Delivery of the baby and placenta"),
        ("Crohn\u2019s disease", "Crohn's disease"),
        ("karyotype 47, XXY", "47,XXY"),
        ("\uff21spirin: 10\u00a0mg", "aspirin 10 mg"),
        ("STRASSE", "Stra\u00dfe"),
        ("not aspirin", "aspirin"),
    ],
)
def test_a_gold_answer_is_found_by_its_words(response: str, gold: str) -> None:
    """Case, punctuation, two articles and ways to write a letter are no part of an answer."""
    assert holds_gold(response, gold) is True


@pytest.mark.parametrize(
    ("response", "gold"),
    [
        ("aspirins", "aspirin"),
        ("albumin infusion of human origin", "human albumin infusion"),
        ("acquired haemophilia", "Acquired haemophilia A"),
        ("vitamin D", "vitamin A"),
        ("", "aspirin"),
    ],
)
def test_other_words_are_not_the_gold_answer(response: str, gold: str) -> None:
    """Part of a word, another order, or a name without its letter would be other answers."""
    assert holds_gold(response, gold) is False


@pytest.mark.parametrize("gold", [None, "", " - ", "The"])
def test_a_gold_answer_without_words_is_none(gold: str | None) -> None:
    """Nothing would be found in every response, and all of them be right."""
    assert holds_gold("The aspirin", gold) is None


@pytest.mark.parametrize(
    ("answer", "is_it"),
    [("The ASPIRIN!", True), ("Give aspirin", False), ("aspirin aspirin", False), ("", False)],
)
def test_an_answer_is_the_gold_answer_if_it_says_nothing_else(answer: str, *, is_it: bool) -> None:
    """An exact match is stricter than finding it; how it is written matters in neither."""
    assert is_gold(answer, "aspirin") is is_it
    assert is_gold(answer, " - ") is None


@given(before=st.text(), gold=st.text(), after=st.text())
def test_whatever_surrounds_a_gold_answer_it_is_found(before: str, gold: str, after: str) -> None:
    """Any text can come before and behind it, in any script."""
    assert holds_gold(f"{before} | {gold} | {after}", gold) in {True, None}
