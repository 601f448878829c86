"""Tasks whose answer follows from the text alone: nothing need be known, only looked up.

Words are single letters, which are one token behind a space in most vocabularies.
"""

from string import ascii_lowercase
from typing import Annotated

from pydantic import Field, NonNegativeInt, PositiveInt

from commands.evaluating.likelihoods import EncodingEvaluation
from commands.evaluating.shipped._items import ListedEvaluation, checked, shuffled

Letters = Annotated[int, Field(ge=2, le=len(ascii_lowercase))]


class LastWord(ListedEvaluation[str], EncodingEvaluation):
    """Right is who predicts a text's last word, from all that stands before it."""

    def get(self, index: int) -> str:
        """Return a text."""
        return self.items[index]

    def clean(self, y_hat: str) -> str:
        """Return the last word that was predicted."""
        return " ".join(y_hat.split()[-1:])

    def check(self, x: str, y_hat: str) -> bool:
        """Say whether it is the text's last word."""
        return y_hat == x.rsplit(maxsplit=1)[-1]


class Copying(LastWord):
    """Different words, then the same again: `c a b : c a b`."""

    @checked
    def __init__(
        self,
        *,
        name: str,
        n_items: PositiveInt = 100,
        n_words: Letters = 8,
        seed: NonNegativeInt = 0,
    ) -> None:
        """Make texts of so many words."""
        super().__init__(name, {f"{name}[{n}]": _copied(n_words, seed, n) for n in range(n_items)})


class Composition(LastWord):
    """Two functions as tables, and one after the other at a value: `F a = b ; ... G F a = c`."""

    @checked
    def __init__(
        self,
        *,
        name: str,
        n_items: PositiveInt = 100,
        n_values: Letters = 4,
        seed: NonNegativeInt = 0,
    ) -> None:
        """Make texts with functions on so many values."""
        super().__init__(
            name, {f"{name}[{n}]": _composed(n_values, seed, n) for n in range(n_items)}
        )


def _copied(n_words: int, *seed: int) -> str:
    words = " ".join(shuffled(ascii_lowercase, *seed)[:n_words])
    return f"{words} : {words}"


def _composed(n_values: int, *seed: int) -> str:
    values = ascii_lowercase[:n_values]
    f, g = (dict(zip(values, shuffled(values, *seed, name), strict=True)) for name in "FG")
    lines = (f"{name} {x} = {table[x]} ;" for name, table in (("F", f), ("G", g)) for x in values)
    x = shuffled(values, *seed)[0]
    return f"{' '.join(shuffled(lines, *seed))} G F {x} = {g[f[x]]}"
