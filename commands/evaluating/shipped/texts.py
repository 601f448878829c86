"""Evaluations on texts from files: BLiMP's sentence pairs, and the perplexity of text files."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from commands.errors import ConfigurationError
from commands.evaluating.likelihoods import PerplexityComparisonEvaluation, PerplexityEvaluation
from commands.evaluating.shipped.items import ListedEvaluation, check_arguments, shuffle
from commands.evaluating.shipped.rows import made_of, read_rows, text_of
from commands.importing.formats.rows import Fields
from commands.settings.sections import UserPath


class SentencePair(NamedTuple):
    """A row of BLiMP (Warstadt et al. 2020): a grammatical and an ungrammatical sentence."""

    good: str
    bad: str
    paradigm: str


class Blimp(ListedEvaluation[SentencePair], PerplexityComparisonEvaluation):
    """Comparison of the good and the bad sentence of each pair."""

    @check_arguments
    def __init__(self, *, folder: Path, path: UserPath) -> None:
        """Read the pairs."""
        pairs = made_of(read_rows([folder / path]), _pair)
        super().__init__({f"{row} {pair.paradigm}".strip(): pair for row, pair in pairs.items()})

    def get(self, index: int) -> tuple[str, Sequence[str], int]:
        """Return both sentences, without a prefix, in an order that depends on them only."""
        good, bad, _ = self.items[index]
        sentences = shuffle([good, bad])
        return "", sentences, sentences.index(good)


def _pair(fields: Fields) -> SentencePair:
    good, bad = text_of("sentence_good", fields), text_of("sentence_bad", fields)
    if good == bad:
        raise ValueError("both sentences are the same")
    return SentencePair(good, bad, str(fields.get("UID") or ""))


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
