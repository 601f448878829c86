"""Synthetic tasks whose answer follows from the text alone: copying, and composing functions.

Words are single letters, which most vocabularies encode as one token after a space.
"""

from string import ascii_lowercase
from typing import Annotated

from pydantic import Field, NonNegativeInt, PositiveInt

from commands.evaluating.likelihoods import EncodingEvaluation
from commands.evaluating.shipped.items import ListedEvaluation, check_arguments, shuffle

Letters = Annotated[int, Field(ge=2, le=len(ascii_lowercase))]


class LastWord(ListedEvaluation[str], EncodingEvaluation):
    """Base of tasks that ask for a text's last word, given everything before it."""

    def clean(self, y_hat: str) -> str:
        """Return the last predicted word."""
        return " ".join(y_hat.split()[-1:])

    def check(self, x: str, y_hat: str) -> bool:
        """Return whether it is the text's last word."""
        return y_hat == x.rsplit(maxsplit=1)[-1]


class Copying(LastWord):
    """Copying: different words, then the same again, as `c a b : c a b`."""

    @check_arguments
    def __init__(
        self,
        *,
        n_items: PositiveInt = 100,
        n_words: Letters = 8,
        seed: NonNegativeInt = 0,
    ) -> None:
        """Make n_items texts of n_words different words."""
        super().__init__([_copying_text(n_words, seed, n) for n in range(n_items)])


class Composition(LastWord):
    """Composition: two functions as tables, applied in turn, as `F a = b ; ... G F a = c`."""

    @check_arguments
    def __init__(
        self,
        *,
        n_items: PositiveInt = 100,
        n_values: Letters = 4,
        seed: NonNegativeInt = 0,
    ) -> None:
        """Make n_items texts with functions on n_values values."""
        super().__init__([_composition_text(n_values, seed, n) for n in range(n_items)])


def _copying_text(n_words: int, *seed: int) -> str:
    words = " ".join(shuffle(ascii_lowercase, *seed)[:n_words])
    return f"{words} : {words}"


def _composition_text(n_values: int, *seed: int) -> str:
    values = ascii_lowercase[:n_values]
    f, g = (dict(zip(values, shuffle(values, *seed, name), strict=True)) for name in "FG")
    lines = (f"{name} {x} = {table[x]} ;" for name, table in (("F", f), ("G", g)) for x in values)
    x = shuffle(values, *seed)[0]
    return f"{' '.join(shuffle(lines, *seed))} G F {x} = {g[f[x]]}"
