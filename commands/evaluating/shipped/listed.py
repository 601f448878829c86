"""Evaluations of a list of items: synthetic tasks, BLiMP's sentence pairs, and texts of files."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import ascii_lowercase
from typing import Annotated, Any, Generic, TypeVar

from pydantic import ConfigDict, Field, NonNegativeInt, PositiveInt, validate_call

from commands.errors import ConfigurationError
from commands.evaluating.evaluation import Evaluation
from commands.evaluating.likelihoods import (
    EncodingEvaluation,
    PerplexityComparisonEvaluation,
    PerplexityEvaluation,
)
from commands.evaluating.shipped.rows import made_of, read_rows, text_of
from commands.importing.formats.rows import Fields
from commands.settings.sections import UserPath
from ledger.identity import Json, digest_of

Item = TypeVar("Item")

check_arguments = validate_call(config=ConfigDict(arbitrary_types_allowed=True))
"""Validate a constructor's arguments, which come from a settings file."""


class ListedEvaluation(Evaluation, Generic[Item]):
    """Base of evaluations whose items are all made by the constructor, maybe each with a label."""

    def __init__(self, items: Mapping[str, Item] | Sequence[Item]) -> None:
        """Set the items, maybe by label."""
        self._labels = tuple(items) if isinstance(items, Mapping) else ()
        self.items = tuple(items.values() if isinstance(items, Mapping) else items)

    def __len__(self) -> int:
        """Count the items."""
        return len(self.items)

    def get(self, index: int) -> Any:  # noqa: ANN401  # of each kind its own
        """Return an item's parts, by default the item."""
        return self.items[index]

    def label(self, index: int) -> str:
        """Return where an item comes from, if it is labelled."""
        return self._labels[index] if self._labels else super().label(index)


def shuffle(texts: Iterable[str], *seed: Json) -> list[str]:
    """Return texts sorted by the SHA-256 of seed and text: the same on every machine."""
    return sorted(texts, key=lambda text: digest_of([*seed, text]))


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


class Blimp(ListedEvaluation[tuple[str, str]], PerplexityComparisonEvaluation):
    """Comparison of the good and the bad sentence of BLiMP's pairs (Warstadt et al. 2020)."""

    @check_arguments
    def __init__(self, *, folder: Path, path: UserPath) -> None:
        """Read the pairs."""
        pairs = made_of(read_rows([folder / path]), _pair)
        super().__init__(
            {f"{row} {name}".strip(): sentences for row, (name, sentences) in pairs.items()}
        )

    def get(self, index: int) -> tuple[str, Sequence[str], int]:
        """Return both sentences, without a prefix, in an order that depends on them only."""
        good, bad = self.items[index]
        sentences = shuffle([good, bad])
        return "", sentences, sentences.index(good)


def _pair(fields: Fields) -> tuple[str, tuple[str, str]]:
    """Return the name of a row's paradigm, its grammatical and its ungrammatical sentence."""
    good, bad = text_of("sentence_good", fields), text_of("sentence_bad", fields)
    if good == bad:
        raise ValueError("both sentences are the same")
    return str(fields.get("UID") or ""), (good, bad)


class TextPerplexity(ListedEvaluation[str], PerplexityEvaluation):
    """Perplexity of a text file, or of a folder's *.txt files: each is one document."""

    @check_arguments
    def __init__(self, *, folder: Path, path: UserPath) -> None:
        """Read the documents, in order of their names."""
        super().__init__({file.name: _read(file) for file in _files(folder / path)})


def _files(path: Path) -> Sequence[Path]:
    """Return a file, or the *.txt files of a folder."""
    if path.is_file():
        return [path]
    files = sorted(file for file in path.glob("*.txt") if file.is_file())
    if not files:
        why = "has no *.txt files" if path.is_dir() else "there is no such file or folder"
        raise ConfigurationError([f"{path}: {why}; name a text file, or a folder of *.txt"])
    return files


def _read(path: Path) -> str:
    """Return a file's text; line ends stay as they are, since metrics count bytes."""
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise ConfigurationError([f"{path}: cannot be read: {error}"]) from error
    except UnicodeDecodeError as error:
        why = f"byte {error.start} is not UTF-8: {error.reason}; write the file again as UTF-8"
        raise ConfigurationError([f"{path}: {why}"]) from error
