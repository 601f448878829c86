"""Recognising battles that a set holds."""

from array import array
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from commands.importing.known_battles import FileRead, KnownBattles, contains_in_order
from ledger.events.imports import ImportedBattle
from tests.support.builders.events import key

ROWS = st.lists(st.sampled_from([0, 1, 256, 2**56, -1]), max_size=6)
ONE, OTHER = FileRead(key("one"), ("plain", 1)), FileRead(key("other"), ("plain", 1))
PROMPTS = st.lists(st.sampled_from(["q1", "q2", "q3"]), max_size=6)


@given(fewer=ROWS, more=ROWS)
def test_rows_are_found_in_a_piece_or_not_at_all(fewer: list[int], more: list[int]) -> None:
    """The search is of bytes, which may be alike across the border of two rows."""
    is_there = any(more[n : n + len(fewer)] == fewer for n in range(len(more) + 1))

    assert contains_in_order(array("q", fewer).tobytes(), array("q", more).tobytes()) == is_there


def battle(question_id: str | None) -> ImportedBattle:
    """Return a win of x over y."""
    return ImportedBattle("x", "y", "model_a", None, question_id, "human", None)


@given(held=PROMPTS, found=PROMPTS)
def test_a_set_holds_of_each_battle_as_many_as_the_file_with_most(
    held: list[str], found: list[str]
) -> None:
    """The law of taking in: the union of files, each a collection with repetitions."""
    known = KnownBattles()
    known.add(ONE, map(battle, held))
    recogniser = known.seen_by(OTHER)

    new = [prompt for prompt in found if not recogniser.knows(battle(prompt))]

    assert Counter(held) + Counter(new) == Counter(held) | Counter(found)


def test_names_that_look_alike_are_told() -> None:
    """One of two programs composes its letters, and a leaderboard has the model twice."""
    pairs = (("h\u00e9", "he\u0301"), ("GPT-4", "gpt-4 "), ("x", "y"))
    known = KnownBattles()
    known.add(ONE, (battle("q1")._replace(model_a=a, model_b=b) for a, b in pairs))

    assert known.look_alikes() == [["GPT-4", "gpt-4 "], ["he\u0301", "h\u00e9"]]


def test_without_a_prompt_id_only_the_same_file_is_known() -> None:
    """One that reads the same may be another's."""
    known = KnownBattles()
    known.add(ONE, [battle(None)])

    assert known.seen_by(ONE).knows(battle(None))
    assert not known.seen_by(OTHER).knows(battle(None))
    assert known.n_battles == 1
