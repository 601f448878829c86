"""Battles of others as columns: nothing is lost, little is added, and columns fit each other."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ledger.events.imports import (
    MAX_BATTLES,
    SIGNS,
    BattlesImported,
    CodedColumn,
    ImportedBattle,
    JurorVote,
    Winner,
    battles_stream,
    set_of,
)
from ledger.identity import StreamId
from ledger.store import Ledger
from tests.support.builders.battles import imported_battles
from tests.support.builders.events import key
from tests.support.strategies.imports import battles_imported

N_ENTRANTS, N_CHUNKS = 130, 20
WINNERS: Sequence[Winner] = ("model_a", "model_b", "tie")


@given(cells=st.lists(st.sampled_from([None, "", "a", "β", "}", "\\"]) | st.text(), min_size=1))
def test_a_column_keeps_every_cell(cells: list[str | None]) -> None:
    """A battle must come out under the prompt that it went in under."""
    column = CodedColumn.of(cells)

    assert list(column.cells(len(cells))) == cells
    assert column.fits(len(cells))


@pytest.mark.parametrize("cells", [["q1"] * 3, ["q1", "q2", "q3"], ["q1"]])
def test_a_column_that_is_plain_has_no_codes(cells: list[str]) -> None:
    """A judge is named once an event, and an id that is its battle's own stands by itself."""
    assert CodedColumn.of(cells).codes == ""


def test_a_sign_takes_no_more_than_its_own_bytes() -> None:
    """JSON would write a quote or a control character in two or six; half a character, never."""
    assert len(set(SIGNS)) == len(SIGNS) >= 2 * MAX_BATTLES
    assert msgspec.json.encode(SIGNS) == f'"{SIGNS}"'.encode()
    assert json.dumps(SIGNS, ensure_ascii=False) == f'"{SIGNS}"'


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"a": "", "b": ""}, "`a` has 0 battles, `b` 0:"),
        ({"b": "$$"}, "`a` has 1 battles, `b` 2:"),
        (
            {"a": "#" * (MAX_BATTLES + 1), "b": "$" * (MAX_BATTLES + 1)},
            ": expected the same, 1 to 5000",
        ),
        ({"a": "%"}, "stands for no entrant"),
        ({"b": "#"}, "an entrant battles itself"),
        (
            {"winners": CodedColumn(("tie", "model_a"))},
            "these columns do not have 1 battles: winners",
        ),
        ({"winners": CodedColumn(("tie", "model_a"), "$#")}, "not have 1 battles: winners"),
        ({"prefs": CodedColumn((0.5,), "$")}, "not have 1 battles: prefs"),
        ({"prompts": CodedColumn(())}, "not have 1 battles: prompts"),
        ({"languages": CodedColumn(("en", "de"))}, "not have 1 battles: languages"),
    ],
)
def test_columns_that_do_not_fit_are_refused(wrong: dict[str, object], why: str) -> None:
    """Read one off, every battle would be won by somebody else."""
    with pytest.raises(ValueError, match=why):
        replace(imported_battles(), **wrong)


@given(event=battles_imported())
def test_battles_are_the_same_in_rows_and_in_columns(event: BattlesImported) -> None:
    """Votes, categories and lengths stay with their battle."""
    again = event.holding([*event.battles()])

    assert [*again.battles()] == [*event.battles()]
    assert (again.natural_key, again.n_skipped) == (event.natural_key, event.n_skipped)


def test_a_jurys_battle_is_one_battle_with_its_votes() -> None:
    """Counted once by ratings, while agreement is computed from what each juror said."""
    votes = (JurorVote("j1", "model_a"), JurorVote("j2", "inconsistent"))
    battle = ImportedBattle("x", "y", "model_a", None, "q1", "llm-judge", "j1+j2", votes=votes)

    event = BattlesImported.of(
        [battle, battle], file_digest=key("file"), mapping=("orq-arena", 1), chunk=1, n_skipped=0
    )

    assert (event.n_battles, event.votes) == (2, CodedColumn((votes,)))
    assert [*event.battles()] == [battle, battle]


def test_an_event_is_named_by_its_file_mapping_and_chunk() -> None:
    """Importing again finds it there; a mapping that was put right may say something else."""
    assert imported_battles().natural_key == (key("file"), "plain@1", "1")


@pytest.mark.parametrize("name", ["arena", "battles:", "a.b-c_d"])
def test_a_set_of_battles_has_a_stream_to_itself(name: str) -> None:
    """Whoever looks for tournaments must know what is none."""
    assert set_of(battles_stream(name)) == name
    assert set_of(StreamId("battles")) is None


def arena(n_battles: int, *, digits: int, per_prompt: int, soft: bool) -> BattlesImported:
    """Return battles of 130 entrants, few of them in most battles."""
    rng = random.Random(0)  # noqa: S311  # battles, not secrets
    names = [f"model-{n:03}-instruct" for n in range(N_ENTRANTS)]
    weights = [1 / (n + 1) for n in range(N_ENTRANTS)]
    pairs: list[list[str]] = []
    while len(pairs) < n_battles:
        pair = rng.choices(names, weights, k=2)
        pairs += [pair] if len(set(pair)) == len(pair) else []
    a, b = zip(*pairs, strict=True)
    asked = [rng.getrandbits(4 * digits) for _ in range(0, n_battles, per_prompt)]
    prompts = [f"{asked[n // per_prompt]:0{digits}x}" for n in range(n_battles)]
    prefs = [rng.randint(-10, 10) / 20 + 0.5 for _ in range(n_battles)]
    return imported_battles(
        a,
        b,
        winners=CodedColumn.of(rng.choices(WINNERS, k=n_battles)),
        prompts=CodedColumn.of(prompts),
        prefs=CodedColumn.of(prefs) if soft else CodedColumn((None,)),
    )


def n_bytes_of(event: BattlesImported) -> int:
    """Return what the columns take by themselves, as the module counts them."""
    n_lines = sum(len(f"{each}\n") for each in (*event.prompts.values, *event.entrants))
    n_a_battle = 2 + 2 + 1 + 2 * bool(event.prompts.codes) + 8 * bool(event.prefs.codes)
    return n_a_battle * event.n_battles + n_lines


@pytest.mark.parametrize(
    ("digits", "per_prompt", "soft"), [(32, 1, False), (8, 1, True), (8, 6, False)]
)
def test_a_ledger_of_battles_takes_little_more_than_their_columns(
    tmp_path: Path, digits: int, per_prompt: int, soft: bool
) -> None:
    """A fifth more, at most: all of an arena fits where its file did."""
    event = arena(MAX_BATTLES, digits=digits, per_prompt=per_prompt, soft=soft)

    with Ledger.open(tmp_path / "battles.db") as ledger:
        for chunk in range(1, N_CHUNKS + 1):
            ledger.append(battles_stream("arena"), [replace(event, chunk=chunk)])

    assert (tmp_path / "battles.db").stat().st_size <= 1.25 * N_CHUNKS * n_bytes_of(event)
