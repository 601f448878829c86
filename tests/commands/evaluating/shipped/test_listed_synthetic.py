"""Tasks that are made by a seed."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from commands.evaluating.shipped.listed import Composition, Copying, LastWord, shuffle
from tests.support.builders.evaluating import made, refusals

HERE = Path()
SEEDS = st.integers(0, 2**32 - 1)


def texts(evaluation: LastWord) -> list[str]:
    """Return all items."""
    return [evaluation.get(index) for index in range(len(evaluation))]


@given(seed=SEEDS, n_words=st.integers(2, 26))
def test_a_copy_says_different_words_again(seed: int, n_words: int) -> None:
    """Each word occurs once before, so what follows it is known."""
    (text,) = texts(made("copying", Copying, HERE, n_items=1, n_words=n_words, seed=seed))

    first, again = text.split(" : ")
    assert first == again
    assert len(set(first.split())) == n_words


@given(seed=SEEDS, n_values=st.integers(2, 26))
def test_a_composition_ends_in_what_its_tables_say(seed: int, n_values: int) -> None:
    """The answer follows from the text, and from nothing else."""
    (text,) = texts(made("composition", Composition, HERE, n_items=1, n_values=n_values, seed=seed))

    *lines, asked = text.split(" ; ")
    table = {tuple(line.split()[:2]): line.split()[-1] for line in lines}
    _, _, x, _, answer = asked.split()
    assert len(table) == 2 * n_values
    assert answer == table["G", table["F", x]]


def test_items_differ_and_the_same_seed_makes_the_same() -> None:
    """Entrants are compared on the same items, on any machine."""
    items = texts(made("copying", Copying, HERE, n_items=50))

    assert len(set(items)) == 50
    assert items == texts(made("copying", Copying, HERE, n_items=50))
    assert not set(items) & set(texts(made("copying", Copying, HERE, n_items=50, seed=1)))
    assert items[0] == "u x d j m w k y : u x d j m w k y"


def test_the_last_word_that_was_predicted_is_compared() -> None:
    """What an entrant makes of the beginning is chance: nobody could know it."""
    copying = made("copying", Copying, HERE)

    assert copying.check("a b : a b", copying.clean("x b b  b"))
    assert not copying.check("a b : a b", copying.clean("a b : a a"))
    assert not copying.check("a b : a b", copying.clean(""))


def test_more_words_than_letters_are_refused() -> None:
    """Different words are promised."""
    (found,) = refusals("copying", HERE, n_words=27)

    assert found.startswith("evaluation 'one': parameters.n_words is 27: ")


@given(st.sets(st.text()), SEEDS)
def test_an_order_depends_on_the_things_alone(things: set[str], seed: int) -> None:
    """Where they stood says nothing of where they come to stand."""
    assert shuffle(sorted(things), seed) == shuffle(sorted(things, reverse=True), seed)
    assert set(shuffle(things, seed)) == things
