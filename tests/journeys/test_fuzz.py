"""Mutated input is refused in a sentence, whatever was done to it: no other error, no hang."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final, TypeAlias

import msgspec
import pytest

from commands.backends.anthropic._replies import answer_of, answers_in, page_of, state_of
from commands.backends.endpoint._batch_replies import answer_in, query_key_in
from commands.backends.endpoint.askers import reply_of, text_of
from commands.backends.endpoint.refused_parameters import LearntParameters
from commands.importing.battles import import_ratings
from commands.importing.formats.catalogue import FORMATS
from commands.settings.inputs import read_bank, read_rubric
from commands.settings.reader import read_settings
from commands.settings.toml import tournament_location
from ledger.errors import TourneyError
from ledger.exchange import export_lines, read_export
from ledger.identity import Digest, Dimension
from ledger.store import Ledger
from projections.verdicts.parsers import PARSERS
from tests.support.builders.commands import MINIMAL, record
from tests.support.builders.events import STREAM, opened
from tests.support.builders.formats import read_file

Feed: TypeAlias = Callable[[Path], object]
N_BY_DAY, N_BY_NIGHT = 40, 2_500  # of each kind of input
KEY: Final = Digest("0" * 64)
HOSTILE: Final = (
    *(b"\x00", b"\xff", b"\xed\xa0\x80", "\u202e\x1b[2J".encode(), b"\r", b"\n\n", b'"', b"'''"),
    *(b"[" * 3_000, b"{" * 3_000, b'{"a":' * 3_000, b"9" * 5_000, b"-1e999", b"NaN", b"1" * 20),
    *(b"null", b"true", b"[]", b"{}", b'""', rb"\ud800", b"={", b"[[entrants]]\n", b"inf", b","),
)
SERVED: Final = """
[[entrants]]
id = "hosted"
loader = "endpoint"
model = "m"
base_url = "http://localhost:8000/v1"

[judge]
provider = "endpoint"
model = "m"
base_url = "http://localhost:8000/v1"

[elo]
k = 2.5
"""
BATTLES: Final = [
    {"model_a": f"m{n}", "model_b": "b", "winner": "tie", "pref": n / 9, "question_id": f"q{n}"}
    for n in range(3)
]
SAID: Final = {
    "type": "message",
    "model": "m",
    "content": [{"type": "text", "text": "Well.\nVERDICT: A"}],
    "usage": {"input_tokens": 1, "output_tokens": 2, "prompt_tokens": 1, "completion_tokens": 2},
    "choices": [{"message": {"content": "VERDICT: A"}, "finish_reason": "stop"}],
}
LINE: Final = {
    "custom_id": KEY,
    "result": {"type": "succeeded", "message": SAID},
    "response": {"status_code": 200, "body": SAID},
}
STATE: Final = {
    "id": "b",
    "processing_status": "ended",
    "created_at": "2026-10-01T00:00:00Z",
    "expires_at": "2026-10-02T00:00:00Z",
    "request_counts": dict.fromkeys(
        ("processing", "succeeded", "errored", "canceled", "expired"), 1
    ),
}


def mutated(content: bytes, random: Random) -> bytes:
    """Return content with a few pieces cut out, doubled, changed or put in."""
    for _ in range(random.randint(1, 4)):
        start, end = sorted(random.randrange(len(content) + 1) for _ in range(2))
        piece = content[start : min(end, start + random.choice((1, 8, 64)))]
        match random.randrange(4):
            case 0:
                content = content[:start] + content[start + len(piece) :]
            case 1:
                content = content[:start] + piece + content[start:]
            case 2:
                content = content[:start] + random.choice(HOSTILE) + content[start:]
            case _:
                hostile = random.choice(HOSTILE)
                content = content[:start] + hostile + content[start + len(piece) :]
    return content


def of_settings(path: Path) -> None:
    """Read a file as settings, whole and in part."""
    with suppress(TourneyError):
        tournament_location(path, {})
    read_settings(path, {})


def of_bank(path: Path) -> None:
    """Read a file as a bank, and as a rubric."""
    with suppress(TourneyError):
        read_rubric(path, Dimension("quality"))
    read_bank(path)


def of_import(path: Path) -> None:
    """Read a file as battles in every format, as ratings, and as an export."""
    for name in FORMATS:
        for suffix in (".json", ".jsonl", ".csv"):
            with suppress(TourneyError):
                read_file(name, path.rename(path.with_suffix(suffix)))
            path = path.with_suffix(suffix)
    with suppress(TourneyError), Ledger.in_memory() as ledger:
        import_ratings(ledger, path, name="x")
    with path.open("rb") as lines:
        assert [*read_export(lines)]


def of_reply(path: Path) -> None:
    """Read a file as each kind of answer of a server, and its text as a verdict."""
    body = path.read_bytes()
    for parse in PARSERS.values():
        parse(body.decode(errors="replace"))
    [*answers_in(iter([body]), answer_of)]
    query_key_in(body)
    learnt = LearntParameters("http://here", "m")
    sent = {"temperature"}
    answer_in(body, lambda _, why, told: [*learnt.refusals_in(why, told, sent, ()).values()])
    for read in (
        lambda: answer_of(KEY, body),
        lambda: reply_of(KEY, body),
        lambda: text_of(KEY, body, elapsed_s=0.0),
        lambda: state_of(body),
        lambda: page_of(body),
    ):
        with suppress(msgspec.DecodeError):  # whoever asks makes a sentence of it
            read()


def exported() -> bytes:
    """Return an export of a few events."""
    with Ledger.in_memory() as ledger:
        ledger.append(STREAM, opened())
        return b"".join(export_lines(ledger.rows()))


def lines(*values: object) -> bytes:
    """Return lines of JSON."""
    return "".join(f"{json.dumps(value)}\n" for value in values).encode()


RUBRIC: Final = b"<!-- version: 1 -->\n+++\nneeds_gold = true\n+++\n# Quality\n"
KINDS: Final[Mapping[str, tuple[Feed, Callable[[], list[bytes]]]]] = {
    "settings": (of_settings, lambda: [MINIMAL.encode(), f"{MINIMAL}{SERVED}".encode()]),
    "bank": (of_bank, lambda: [lines(record("p1"), record("p2")), RUBRIC]),
    "import": (of_import, lambda: [lines(*BATTLES), lines(BATTLES), exported()]),
    "reply": (of_reply, lambda: [lines(SAID), lines(LINE), lines(STATE), lines({"data": [STATE]})]),
}


@pytest.mark.parametrize(
    "n_inputs", [N_BY_DAY, pytest.param(N_BY_NIGHT, marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize("kind", KINDS)
def test_mutated_input_is_refused_in_a_sentence(tmp_path: Path, kind: str, n_inputs: int) -> None:
    """Files come from strangers, replies from servers of theirs."""
    feed, sound = KINDS[kind]
    random = Random(kind)  # noqa: S311  # not for security
    said: list[str] = []
    for content in (mutated(random.choice(sound()), random) for _ in range(n_inputs)):
        path = tmp_path / "input.toml"
        path.write_bytes(content)
        try:
            feed(path)
        except TourneyError as error:
            said.append(str(error))
        for each in tmp_path.iterdir():
            each.unlink()

    assert all(said)
    assert (len(said) > n_inputs / 4) == (kind != "reply")
