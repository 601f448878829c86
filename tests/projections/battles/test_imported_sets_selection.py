"""Some battles of a set: by category, language, judge and source; and what unread replies count."""

import pytest
from hypothesis import given
from msgspec.structs import replace

from ledger.events.imports import BattlesImported, CodedColumn, ImportedBattle
from projections.battles.imported_sets import (
    COLUMNS,
    Unread,
    Where,
    battles_where,
    said_of,
    values_of,
    with_unread,
)
from tests.support.builders.battles import imported_battles, of_file
from tests.support.builders.events import key, prompt
from tests.support.strategies.events import battles_imported

MIXED = imported_battles(
    ("x", "y", "x", "z"),
    ("y", "z", "z", "y"),
    categories=CodedColumn.of([("math", "code"), (), ("code",), ("math",)]),
    languages=CodedColumn.of(["en", "de", None, "de"]),
    judges=CodedColumn.of([None, "opus", "opus", "gpt"]),
    sources=CodedColumn.of(["human", "llm-judge", "llm-judge", "llm-judge"]),
)
PLAIN = imported_battles(file_digest=key("plain"))


@pytest.mark.parametrize(
    ("where", "places"),
    [
        ({"category": ["math"]}, [0, 3]),
        ({"category": ["math", "code"]}, [0, 2, 3]),
        ({"category": ["math"], "language": ["de"]}, [3]),
        ({"judge": ["opus"]}, [1, 2]),
        ({"source": ["human"], "language": ["en", "de"]}, [0]),
        ({"judge": ["opus"], "category": ["math"]}, []),
    ],
)
def test_a_battle_stays_that_has_a_value_in_each_column(where: Where, places: list[int]) -> None:
    """Several values of one column are alternatives; a battle may have several categories."""
    everything = [*MIXED.battles()]

    found = [*battles_where([MIXED], where)]

    battles = [battle for event in found for battle in event.battles()]
    assert battles == [everything[place] for place in places]
    assert len(found) == bool(places)


def test_entrants_of_other_battles_are_not_named() -> None:
    """They would stand in each table without a battle."""
    [event] = battles_where([MIXED, PLAIN], {"category": ["math"], "language": ["en"]})

    assert event.entrants == ("x", "y")
    assert (event.file_digest, event.format, event.chunk) == (key("file"), "plain", 1)


def test_the_columns_that_say_something_are_listed() -> None:
    """With their values in alphabetical order: what there is to choose from."""
    assert values_of([PLAIN, MIXED]) == {
        "category": ["code", "math"],
        "language": ["de", "en"],
        "judge": ["gpt", "opus"],
        "source": ["human", "llm-judge"],
    }
    assert values_of([PLAIN]) == {"source": ["human"]}
    assert values_of([]) == {}


@given(event=battles_imported())
def test_every_value_that_is_listed_selects_battles(event: BattlesImported) -> None:
    """And all values of a column together those that have any there."""
    for column, values in values_of([event]).items():
        for value in values:
            [found] = battles_where([event], {column: [value]})
            assert value in values_of([found])[column]
        assert column in COLUMNS


WON = ImportedBattle("m", "base", "model_a", 0.25, "q1", "llm-judge", "j1")
UNREAD = ImportedBattle("base", "m", "no verdict", None, "q1", "llm-judge", "j1")
OTHER_JUDGE = WON._replace(judge_model="j2")
OTHER_PROMPT = WON._replace(question_id="q2")
OTHER_PAIR = WON._replace(model_a="n")
VOTE = WON._replace(source="human", pref=None)
MUTE = VOTE._replace(winner="no verdict", question_id="q3")
ALL = [WON, UNREAD, OTHER_JUDGE, OTHER_PROMPT, OTHER_PAIR, VOTE, MUTE]


@pytest.mark.parametrize(
    ("rule", "first", "second"),
    [
        ("drop", WON, UNREAD),
        ("tie", WON, UNREAD._replace(winner="tie")),
        ("drop-pair", WON._replace(winner="no verdict", pref=None), UNREAD),
    ],
)
def test_an_unread_reply_counts_by_the_rule_and_nothing_else_changes(
    rule: Unread, first: ImportedBattle, second: ImportedBattle
) -> None:
    """Another judge, prompt or pair stands for itself; what people did not say is no reply."""
    events = [of_file(ALL[:3]), of_file(ALL[3:])]  # a pair may go over two events

    found = [battle for event in with_unread(events, rule) for battle in event.battles()]

    assert found == [first, second, *ALL[2:]]


def test_a_prompt_says_what_it_is_selected_by() -> None:
    """One without a category is in none, and one with several tags has each of them."""
    plain = prompt("p1")
    tagged = replace(plain, category="math", tags=("easy", "sums"))

    assert said_of(plain)["category"] == ()
    assert said_of(tagged) == {
        "category": ("math",),
        "source": (plain.source,),
        "subject": (plain.subject,),
        "tag": ("easy", "sums"),
    }
