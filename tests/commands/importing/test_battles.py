"""Taking in a file of battles: all or none, and once."""

import json
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from commands.cli.exports import write_records
from commands.errors import ConfigurationError
from commands.importing.battles import (
    BattleFile,
    BattleImport,
    FileRead,
    KnownBattles,
    bad_rows,
    contains_in_order,
    import_battles,
)
from commands.importing.formats import plain
from commands.importing.formats.catalogue import FORMATS
from commands.importing.formats.files import records_of
from commands.importing.formats.rows import BadRow, Record, Records
from ledger.events.imports import MAX_BATTLES, BattlesImported, CodedColumn, ImportedBattle
from ledger.store import Ledger
from projections.artifacts.judgearena import of_imported
from projections.battles.imported_sets import IMPORTED_BATTLES
from projections.fold import fold
from tests.support.builders.events import key
from tests.support.strategies.events import battles_imported

PLAIN = FORMATS["plain"]
JUDGEARENA = FORMATS["judgearena"]
PLAIN_WINNERS = ("model_a", "model_b", "tie", "tie (bothbad)")
HEADER = "model_a,model_b,winner\n"


def write(path: Path, *rows: str) -> Path:
    """Write a CSV of battles."""
    path.write_text(HEADER + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


def take_in(
    ledger: Ledger,
    path: Path,
    *,
    records: Records | None = None,
    skip_bad: bool = False,
    name: str = "arena",
) -> BattleImport:
    """Import a file of plain battles."""
    found = records_of(path, PLAIN) if records is None else records
    (taken,) = import_battles(ledger, [BattleFile(path, found, PLAIN, name)], skip_bad=skip_bad)
    return taken


def imported(ledger: Ledger) -> tuple[BattlesImported, ...]:
    """Return what was imported into a ledger."""
    return tuple(fold(IMPORTED_BATTLES, ledger.read()).events)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Give the place of a file."""
    return tmp_path / "battles.csv"


def test_battles_are_counted_as_they_are_taken_in(ledger: Ledger, file: Path) -> None:
    """No verdict is no tie, in the ledger as in what is said of it."""
    write(file, "x,y,model_a", "y,z,tie", "x,z,no verdict", "x,y,tie (bothbad)")

    taken = take_in(ledger, file)

    (event,) = imported(ledger)
    assert taken.n_battles == event.n_battles == 4
    assert taken.entrants == {"x", "y", "z"}
    assert taken.winners == {"model_a": 1, "tie": 1, "tie (bothbad)": 1, "no verdict": 1}
    assert (taken.n_known, taken.n_skipped, taken.judges) == (0, 0, set())


def test_a_file_that_is_imported_again_is_there_already(ledger: Ledger, file: Path) -> None:
    """Under another name, too: it is its content that is imported."""
    write(file, "x,y,model_a")
    take_in(ledger, file)

    taken = take_in(ledger, file.rename(file.with_name("copy.csv")))

    assert (taken.n_battles, taken.n_known) == (1, 1)
    assert ledger.head.position == 1


def test_one_bad_row_refuses_the_file_whole(ledger: Ledger, file: Path) -> None:
    """What was read before it was appended already, and is taken back."""
    write(file, *["x,y,model_a"] * (MAX_BATTLES + 1), "x,y,A", "x,x,tie")

    with pytest.raises(ConfigurationError) as caught:
        take_in(ledger, file)

    assert caught.value.faults[0].startswith(f"{file}: 2 rows cannot be read as format plain: ")
    assert caught.value.faults[1].startswith(f"{file}:{MAX_BATTLES + 3}: winner is 'A', but must")
    assert caught.value.faults[2] == f"{file}:{MAX_BATTLES + 4}: 'x' battles itself"
    assert ledger.head.position == 0
    assert take_in(ledger, file, skip_bad=True).n_known == 0


def test_the_first_bad_rows_are_listed_and_the_others_counted(ledger: Ledger, file: Path) -> None:
    """A file of another format has a million of them."""
    write(file, "x,y,model_a", *["x,x,tie"] * 23)

    taken = take_in(ledger, file, skip_bad=True)

    lines = list(bad_rows(taken))
    assert len(lines) == 21
    assert lines[-1] == "... and 3 rows more"


def test_bad_rows_that_are_left_out_are_on_record(ledger: Ledger, file: Path) -> None:
    """Each with the chunk behind which it stood, to the last of the file."""
    good = ["x,y,model_a"]
    write(file, "bad,bad,tie", *good * MAX_BATTLES, "bad,bad,tie", *good, *["bad,bad,tie"] * 2)

    taken = take_in(ledger, file, skip_bad=True)

    assert [(each.chunk, each.n_skipped) for each in imported(ledger)] == [(1, 2), (2, 2)]
    assert (taken.n_battles, taken.n_skipped) == (MAX_BATTLES + 1, 4)


@pytest.mark.parametrize("rows", [[], ["x,x,tie"]])
def test_a_file_without_battles_is_refused(ledger: Ledger, file: Path, rows: list[str]) -> None:
    """Nothing could be said of it but that it was there."""
    write(file, *rows)

    with pytest.raises(ConfigurationError, match="has no battle of format plain"):
        take_in(ledger, file, skip_bad=True)


def test_a_file_that_changes_while_it_is_read_is_refused(ledger: Ledger, file: Path) -> None:
    """Its digest would name what nobody read."""
    write(file, "x,y,model_a")

    def growing() -> Iterator[Record | BadRow]:
        yield from records_of(file, PLAIN)
        write(file, "x,y,model_a", "x,y,model_b")

    with pytest.raises(ConfigurationError, match="changed while it was read; import it again"):
        take_in(ledger, file, records=growing())

    assert ledger.head.position == 0


def told(events: Iterable[BattlesImported]) -> str:
    """Return battles as lines of JSON."""
    return "".join(f"{json.dumps(record)}\n" for record in of_imported(events))


def sound(event: BattlesImported) -> bool:
    """Say whether an event's texts are what rows of a file could have."""
    return "" not in (*event.prompts.values, *event.judges.values)


def agreeing(event: BattlesImported) -> BattlesImported:
    """Take away the preferences that rows of a file could not have beside their winners."""
    n = event.n_battles
    lowest, highest = {"model_b": 0.5, "no verdict": 2.0}, {"model_a": 0.5}
    prefs = [
        pref if pref is not None and lowest.get(won, 0) <= pref <= highest.get(won, 1) else None
        for won, pref in zip(event.winners.cells(n), event.prefs.cells(n), strict=True)
    ]
    return replace(event, prefs=CodedColumn.of(prefs))


@given(event=battles_imported().filter(sound).map(agreeing))
def test_what_was_exported_is_imported_as_the_same_battles(
    tmp_path_factory: pytest.TempPathFactory, event: BattlesImported
) -> None:
    """Whatever was said, by model and of what: the second export is the first, byte for byte."""
    file = tmp_path_factory.mktemp("exported") / "battles.jsonl"
    file.write_text(told([event]), encoding="utf-8")

    with Ledger.in_memory() as ledger:
        records = records_of(file, JUDGEARENA)
        import_battles(ledger, [BattleFile(file, records, JUDGEARENA, "arena")])

        assert told(imported(ledger)) == file.read_text(encoding="utf-8")


SPOKEN = st.text(alphabet='a,"\n\r\t=-@\u0027é\u0301e ;', min_size=1)  # NFC, NFD, quotes, line ends


@st.composite
def spelt_badly(draw: st.DrawFn) -> BattlesImported:
    """Return battles of entrants whose names no format of tables likes."""
    event = draw(battles_imported().filter(sound).map(agreeing))
    n = len(event.entrants)
    names = draw(st.lists(SPOKEN, min_size=n, max_size=n, unique=True))
    prompts = CodedColumn.of(
        draw(st.lists(SPOKEN, min_size=event.n_battles, max_size=event.n_battles))
    )
    return replace(event, entrants=tuple(names), prompts=prompts)


@given(event=battles_imported().filter(sound).map(agreeing) | spelt_badly())
def test_an_exported_table_is_imported_as_the_same_battles(
    tmp_path_factory: pytest.TempPathFactory, event: BattlesImported
) -> None:
    """Whatever the names: commas, quotes, line ends, formulas, composed letters or not."""
    folder = tmp_path_factory.mktemp("exported")
    for file in (folder / "battles.csv", folder / "battles.parquet"):
        write_records(of_imported([event]), file, plain.COLUMNS)

        with Ledger.in_memory() as ledger:
            take_in(ledger, file)

            assert told(imported(ledger)) == told([event])


ON_PROMPTS = "model_a,model_b,winner,question_id\n"
VOTES = tuple(f"x,y,model_{'ab'[n % 2]},q{n}" for n in range(20))


def votes(path: Path, *rows: str) -> Path:
    """Write a CSV of battles on prompts that have a name."""
    path.write_text(ON_PROMPTS + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("rows", "n_new"),
    [
        (VOTES[12:], 0),
        ((*VOTES[::-1], "x,y,model_a,q20"), 1),
        ((*VOTES[:3], "x,y,tie,q1", *VOTES[3:]), 1),
        ((VOTES[0], VOTES[0], VOTES[0]), 2),
    ],
    ids=["its tail", "turned round", "another's vote within", "twice more"],
)
def test_battles_that_a_set_holds_are_recognised_wherever_they_stand(
    ledger: Ledger, tmp_path: Path, rows: tuple[str, ...], n_new: int
) -> None:
    """By all that is said of them; what a file says twice is there twice."""
    take_in(ledger, votes(tmp_path / "votes.csv", *VOTES))

    taken = take_in(ledger, votes(tmp_path / "now.csv", *rows))
    again = take_in(ledger, votes(tmp_path / "now.csv", *rows))

    assert (taken.n_battles, taken.n_known) == (len(rows), len(rows) - n_new)
    assert taken.n_in_set == again.n_in_set == 20 + n_new
    assert again.n_known == len(rows)
    assert sum(event.n_battles for event in imported(ledger)) == 20 + n_new


def test_battles_that_an_earlier_version_took_for_peoples_are_recognised(
    ledger: Ledger, tmp_path: Path
) -> None:
    """Their table does not say whose they are, and of no source they are unknown today."""
    of_people = tmp_path / "people.csv"
    rows = (f"{ON_PROMPTS.strip()},source", *(f"{row},human" for row in VOTES))
    of_people.write_text("\n".join(rows), encoding="utf-8")
    take_in(ledger, of_people)

    assert take_in(ledger, votes(tmp_path / "votes.csv", *VOTES)).n_known == len(VOTES)


def test_files_of_one_command_recognise_each_others_battles(ledger: Ledger, tmp_path: Path) -> None:
    """In their order; each set by itself."""
    first = votes(tmp_path / "first.csv", *VOTES)
    second = votes(tmp_path / "second.csv", "x,y,tie,q20", *VOTES[::-1])
    files = [
        BattleFile(path, records_of(path, PLAIN), PLAIN, name)
        for path, name in ((first, "arena"), (second, "arena"), (second, "other"))
    ]

    taken = import_battles(ledger, files)

    assert [each.n_known for each in taken] == [0, 20, 0]
    assert [each.n_in_set for each in taken] == [20, 21, 21]


def test_one_bad_file_refuses_those_beside_it(ledger: Ledger, tmp_path: Path) -> None:
    """Half an arena must not be taken for all of it."""
    good, bad = votes(tmp_path / "good.csv", *VOTES), votes(tmp_path / "bad.csv", "x,x,tie,q1")
    files = [BattleFile(path, records_of(path, PLAIN), PLAIN, "a") for path in (good, bad)]

    with pytest.raises(ConfigurationError, match=r"bad\.csv: 1 row cannot be read"):
        import_battles(ledger, files)

    assert ledger.head.position == 0


BARE = (
    *(f"{pair},{winner}" for pair in ("x,y", "x,z", "y,z") for winner in PLAIN_WINNERS),
    *("x,y,tie", "x,z,tie"),
)


@pytest.mark.parametrize(
    ("rows", "n_shared"),
    [((*BARE, "y,z,model_b"), 14), (BARE[2:], 12), (BARE[::-1], 14)],
    ids=["grown", "its tail", "turned round"],
)
def test_a_copy_without_prompt_ids_is_refused(
    ledger: Ledger, tmp_path: Path, rows: tuple[str, ...], n_shared: int
) -> None:
    """Its old battles would count twice for good, and nobody can tell which of them are old."""
    take_in(ledger, write(tmp_path / "before.csv", *BARE))

    with pytest.raises(ConfigurationError) as caught:
        take_in(ledger, write(tmp_path / "now.csv", *rows))

    assert str(caught.value) == (
        f"{tmp_path / 'now.csv'}: {n_shared} of its {len(rows)} battles are already in"
        " set 'arena', from another file, of 14 battles, and would count twice; nothing was"
        " imported; give each prompt a question_id, import only the new rows, or use another"
        " --name"
    )
    assert len(imported(ledger)) == 1


@pytest.mark.parametrize("rows", [["x,y,model_a"] * 10, BARE[:7]], ids=["alike", "few kinds"])
def test_few_battles_that_are_alike_join_a_set(
    ledger: Ledger, tmp_path: Path, rows: Sequence[str]
) -> None:
    """Without prompts ten wins of x over y are within any eleven: nobody knows whose they are."""
    take_in(ledger, write(tmp_path / "before.csv", rows[0], *rows))

    taken = take_in(ledger, write(tmp_path / "other.csv", *rows))

    assert taken.n_in_set == 2 * len(rows) + 1


def test_a_corrected_mapping_reads_a_file_anew(ledger: Ledger, tmp_path: Path) -> None:
    """What the one before made of it does not count beside it."""
    file = votes(tmp_path / "votes.csv", *VOTES)
    take_in(ledger, file)
    records = records_of(file, PLAIN)

    corrected = PLAIN._replace(mapping_version=PLAIN.mapping_version + 1)

    (taken,) = import_battles(ledger, [BattleFile(file, records, corrected, "arena")])

    assert taken.n_known == 0
    assert [each.mapping_version for each in imported(ledger)] == [corrected.mapping_version]


ROWS = st.lists(st.sampled_from([0, 1, 256, 2**56, -1]), max_size=6)
ONE, OTHER = FileRead(key("one"), "plain", 1), FileRead(key("other"), "plain", 1)
PROMPTS = st.lists(st.sampled_from(["q1", "q2", "q3"]), max_size=6)


@example(fewer=[1], more=[256, 0])  # at the second byte of the first row
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
