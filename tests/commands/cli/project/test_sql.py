"""How `tourney sql` shows an answer."""

from commands.auditing.query import Answer
from commands.cli.project.sql import answer_table, views_table
from commands.cli.tables.render import Format
from ledger.storage.schema import VIEWS
from tests.support.goldens.screens import rendered


def test_a_table_shows_the_beginning_of_a_long_text() -> None:
    """One response would fill the screen; data has all of it."""
    answer = Answer(("n", "text"), ((1, "y" * 1000), (2, None)))

    shown = rendered(answer_table(answer, is_cut=True))

    assert shown.count("y") == 200
    assert "--json and --format csv have all of them" in shown
    assert "y" * 1000 in rendered(answer_table(answer, is_cut=False), Format.CSV)


def test_hostile_texts_and_names_are_escaped() -> None:
    """A column can be named by a text, too."""
    answer = Answer(("\x1b[2Jx",), (("=1+1\x1b]8;;http://evil\x07",),))
    table = answer_table(answer, is_cut=True)

    for each in set(Format) - {Format.SVG, Format.PARQUET}:  # no text, or no chart
        assert "\x1b" not in rendered(table, each)
    assert "'=1+1" in rendered(table, Format.CSV)


def test_each_column_that_a_query_names_is_shown() -> None:
    """Other tables have a judge that all rows share in their title; here it is the answer."""
    answer = Answer(("judge", "dimension"), (("sonnet", "style"), ("sonnet", "style")))

    shown = rendered(answer_table(answer, is_cut=True))

    assert shown.split() == ["Answer", "judge", "dimension", *("sonnet", "style") * 2]


def test_no_rows_are_said_to_be_none() -> None:
    """An empty screen would leave open whether it worked."""
    assert rendered(answer_table(Answer(("n",), ()), is_cut=True)) == "The query found no rows.\n"


def test_without_a_query_all_tables_are_listed() -> None:
    """With their columns, to choose from."""
    table = views_table()

    assert [row["table"] for row in table.rows] == [view.name for view in VIEWS]
    assert "entrant_a, entrant_b" in rendered(table, Format.CSV)
