"""The bank's own prompts as evaluations, and when two answers say the same."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.evaluating.shipped.bank import BankChoices, BankRollout, contains_answer
from commands.settings.inputs import read_bank, shipped_data
from ledger.events.registration import Prompt
from ledger.identity import PromptId
from projections.verdicts.parsers import holds_gold
from tests.support.builders.evaluating import answering, made, refusals, write_lines

ASPIRIN = Prompt(PromptId("p1"), "recall", "drugs", "What thins blood?", gold_answer="Aspirin")
BIOTIN = Prompt(PromptId("p2"), "vignette", "food", "Which B?", gold_answer="Biotin (vitamin B7)")
OPEN = Prompt(PromptId("p3"), "curated", "life", "How long have I got?")
BANK = (ASPIRIN, BIOTIN, OPEN)
WRONG = [
    {"prompt_id": "p1", "distractors": ["Codeine", "Insulin"]},
    {"prompt_id": "p2", "distractors": ["Thiamine (vitamin B1)"]},
]


@pytest.fixture(scope="module")
def bank() -> tuple[Prompt, ...]:
    """Give the bank that ships."""
    return read_bank(shipped_data() / "bank.jsonl")


def test_prompts_with_a_gold_answer_are_asked_and_known_by_their_ids(tmp_path: Path) -> None:
    """A prompt that has no right answer cannot be answered rightly."""
    rollout = made("bank-rollout", BankRollout, tmp_path, BANK)

    assert [rollout.get(index) for index in range(len(rollout))] == [
        ("What thins blood?", "Aspirin"),
        ("Which B?", "Biotin (vitamin B7)"),
    ]
    assert [rollout.label(0), rollout.label(1)] == ["p1", "p2"]


def test_sources_choose_among_the_prompts(tmp_path: Path) -> None:
    """Facts and cases are different skills."""
    rollout = made("bank-rollout", BankRollout, tmp_path, BANK, sources=["vignette"])

    assert [rollout.label(index) for index in range(len(rollout))] == ["p2"]


def test_a_source_without_gold_answers_is_refused(tmp_path: Path) -> None:
    """A misspelt source would be an evaluation of nothing."""
    (found,) = refusals("bank-rollout", tmp_path, BANK, sources=["recall", "curated"])

    assert found.startswith("the bank has no prompt of source 'curated' with a gold answer")
    assert found.endswith("'recall', 'vignette'")


def test_an_answer_is_right_that_has_the_words_of_gold_in_it(tmp_path: Path) -> None:
    """Chat models answer in sentences."""
    said = {"What thins blood?": "Answer: It is ASPIRIN, of course.", "Which B?": "Biotins"}
    inference, generator = answering(lambda task: said[task.prompt_text])
    rollout = made("bank-rollout", BankRollout, tmp_path, BANK, max_new_tokens=7)

    assert list(rollout(inference, reduce="none")) == [1.0, 0.0]
    assert rollout.clean(" Answer: Aspirin. ") == "Aspirin"
    assert {task.entrant.max_new_tokens for task in generator.asked} == {7}


def test_choices_follow_the_prompt_with_the_space_on_their_side(tmp_path: Path) -> None:
    """A prefix that ends in a space would end in a token that no text goes on from."""
    write_lines(tmp_path / "distractors.jsonl", *WRONG)
    choices = made("bank-choices", BankChoices, tmp_path, BANK, sources=["recall"])

    prefix, continuations, correct = choices.get(0)

    assert prefix == "What thins blood?\nAnswer:"
    assert sorted(continuations) == [" Aspirin", " Codeine", " Insulin"]
    assert continuations[correct] == " Aspirin"


def test_what_a_distractor_file_lacks_is_told_for_all_prompts(tmp_path: Path) -> None:
    """Whoever brings a bank writes distractors for it, and wants the whole list."""
    repeated = {"prompt_id": "p1", "distractors": ["aspirin.", "Codeine"]}
    write_lines(tmp_path / "mine.jsonl", repeated)

    found = refusals("bank-choices", tmp_path, BANK, distractors="mine.jsonl")

    assert found[0] == "mine.jsonl: prompt 'p1' has the same answer twice"
    assert found[1].startswith("mine.jsonl: prompt 'p2' has no distractors; write some")


def test_neither_place_nor_length_gives_the_shipped_gold_away(bank: tuple[Prompt, ...]) -> None:
    """Who always takes the first, the longest or the shortest of four is right by chance alone."""
    choices = made("bank-choices", BankChoices, shipped_data(), bank)
    items = [choices.get(index) for index in range(len(choices))]

    places = Counter(correct for _, _, correct in items)
    ranks = Counter(rank_of_length(continuations, correct) for _, continuations, correct in items)

    assert len(items) == sum(prompt.gold_answer is not None for prompt in bank) == 93
    assert {len(continuations) for _, continuations, _ in items} == {4}
    assert all(15 <= places[place] <= 35 for place in range(4)), places  # of 93
    assert all(10 <= ranks[rank] <= 37 for rank in range(4)), ranks


def rank_of_length(texts: object, correct: int) -> int:
    """Return how many texts are shorter than the right one."""
    assert isinstance(texts, list)
    return sum(len(text) < len(texts[correct]) for text in texts)


@pytest.mark.parametrize(
    ("said", "gold", "is_right"),
    [
        ("It is the AXILLARY  nerve!", "Axillary nerve", True),
        ("47, XXY", "47,XXY", True),
        ("Juxtaglomerular cells", "Juxtaglomerular (granular) cells", True),
        ("the granular juxtaglomerular (granular) cells", "Juxtaglomerular (granular) cells", True),
        ("\ufb01brin", "Fibrin", True),
        ("beta_blocker", "beta blocker", True),
        ("delivery of baby", "Delivery of the baby", True),
        ("CAGE", "CAG", False),
        ("nerve axillary", "Axillary nerve", False),
        ("", "CAG", False),
        ("?", "(R0)", False),
    ],
)
def test_case_punctuation_and_asides_tell_no_answers_apart(
    said: str, gold: str, is_right: bool
) -> None:
    """Nobody is wrong for a full stop; letters inside a longer word are not the word."""
    assert contains_answer(said, gold) is is_right


@given(said=st.text(), wanted=st.text())
def test_what_contains_a_gold_answer_holds_it(said: str, wanted: str) -> None:
    """An evaluation's score and the metric `containment` tell words by one rule."""
    assert contains_answer(said, wanted) or not holds_gold(said, wanted)
    if "(" not in wanted:
        assert contains_answer(said, wanted) is bool(holds_gold(said, wanted))
