"""What the shipped evaluations share: a list of items, reading JSON lines, stable shuffling."""

import gzip
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Generic, NamedTuple, Self, TypeVar

import msgspec
from pydantic import ConfigDict, validate_call

from commands.entrants.chats import Chat, plain_text
from commands.errors import ConfigurationError, first_lines, place_and_fault
from commands.evaluating.evaluation import Evaluation
from commands.evaluating.rollout import RolloutEvaluation
from commands.evaluating.samples import Inference, subset
from commands.settings.sections import EvaluationOptions
from ledger.identity import Digest, Json, digest_of

Item = TypeVar("Item")

check_arguments = validate_call(config=ConfigDict(arbitrary_types_allowed=True))
"""Validate a constructor's arguments, which come from a settings file."""


class ListedEvaluation(Evaluation, Generic[Item]):
    """Base of evaluations whose items are all made by the constructor, each with a label."""

    def __init__(self, items: Mapping[str, Item]) -> None:
        """Set the items, by label."""
        self.items = tuple(items.values())
        self._labels = tuple(items)

    def __len__(self) -> int:
        """Count the items."""
        return len(self.items)

    def label(self, index: int) -> str:
        """Return where an item comes from."""
        return self._labels[index]


class DividedEvaluation(ListedEvaluation[Item]):
    """Base of evaluations whose items may belong to parts, such as the subjects of MMLU."""

    _part_of: tuple[str, ...] = ()  # of each item; empty: there are no parts
    whole: str = ""  # name of the evaluation that this is a part of

    def divided(self, part_of: Sequence[str]) -> Self:
        """Say to which part each item belongs, and return the evaluation."""
        self._part_of = tuple(part_of)
        return self

    def parts(self) -> Mapping[str, Self]:
        """Return each part as an evaluation of its own, by name; none if there are no parts.

        Log-likelihoods of a part are also those of the whole: nothing is computed twice.
        """
        return {name: self._part(name) for name in dict.fromkeys(self._part_of)}

    def _part(self, name: str) -> Self:
        part = copy(self)
        part.whole = self.whole or self.id
        chosen = [n for n, of in enumerate(self._part_of) if of == name]
        ListedEvaluation.__init__(part, {self.label(n): self.items[n] for n in chosen})
        return part.divided(())

    def drawn(self, items: Sequence[Digest], options: EvaluationOptions) -> tuple[Digest, ...]:
        """Return the items to observe: of each part as many as of an evaluation of its own."""
        chosen = {
            item
            for name in dict.fromkeys(self._part_of)
            for item in subset(
                [item for item, of in zip(items, self._part_of, strict=True) if of == name],
                options.length,
                options.seed,
            )
        }
        if not self._part_of:
            return super().drawn(items, options)
        return tuple(item for item in items if item in chosen)


class AskedQuestion(NamedTuple):
    """A question, perhaps behind examples, and the expected answer."""

    chat: Chat
    expected: str


class DividedRollout(DividedEvaluation[AskedQuestion], RolloutEvaluation):
    """Base of rollouts with parts, which share the answers of the whole."""

    def get(self, index: int) -> tuple[str, str]:
        """Return a question as plain text, and the expected answer."""
        chat, expected = self.items[index]
        return plain_text(chat), expected

    def chat_turns(self, index: int) -> Chat:
        """Return the examples and the question as turns."""
        return self.items[index].chat

    def settings(self, inference: Inference, options: EvaluationOptions) -> Mapping[str, Json]:
        """Return the settings under the name of the whole, so that nothing is asked twice."""
        return {**super().settings(inference, options), "scored_by": self.whole or self.id}


Line = TypeVar("Line", bound=msgspec.Struct)


def read_lines(path: Path, kind: type[Line]) -> Mapping[str, Line]:
    """Read a file of JSON lines as structs, keyed "file:line"; unknown keys are ignored.

    A struct can reject a line with a ValueError in its `__post_init__`.

    Raises:
        ConfigurationError: The file is missing or empty, or a line does not fit the struct.
    """
    rows: dict[str, Line] = {}
    faults: list[str] = []
    decoder = msgspec.json.Decoder(kind)
    for number, line in _lines(path):
        try:
            rows[f"{path.name}:{number}"] = decoder.decode(line)
        except msgspec.ValidationError as error:
            place, why = place_and_fault(error)
            faults.append(f"{path}:{number}: {f'{place}: ' if place else ''}{why}")
        except ValueError as error:
            faults.append(f"{path}:{number}: not JSON: {error}")
    if not rows and not faults:
        faults.append(f"{path}: the file is empty; it needs one JSON object per line")
    if faults:
        raise ConfigurationError([*first_lines(faults, len(faults), "fault")])
    return rows


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers from 1."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
            for n, line in enumerate(lines, start=1):
                text = line.removeprefix(BOM_UTF8)  # which editors on Windows write
                if text.strip():
                    yield n, text
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigurationError([f"{path}: cannot be read: {error}"]) from error


def shuffle(texts: Iterable[str], *seed: Json) -> list[str]:
    """Return texts sorted by the SHA-256 of seed and text: the same on every machine."""
    return sorted(texts, key=lambda text: digest_of([*seed, text]))
