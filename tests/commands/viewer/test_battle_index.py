"""Battles are filtered by all that is known of them, and searched by their texts."""

from functools import cache

import pytest
from msgspec.structs import replace

from commands.viewer.battle_index import BattleFilter, BattleIndex
from ledger.events.responses import ResponseGenerated
from tests.support.builders.views import viewed
from tests.support.builders.worlds import Fate, cup, history

FATES: tuple[Fate, ...] = ("a", "b", "tie", "inconsistent", "refused")  # and one pending


@cache
def index() -> BattleIndex:
    """Return the index of a cup: zoe-amy, zoe-kim, amy-kim on p1, then on p2."""
    return viewed(*history(cup(), *FATES)).index


@pytest.mark.parametrize(
    ("chosen", "places"),
    [
        (BattleFilter(), [0, 1, 2, 3, 4, 5]),
        (BattleFilter(entrant="zoe"), [0, 1, 3, 4]),
        (BattleFilter(entrant="zoe", against="kim"), [1, 4]),
        (BattleFilter(entrant="nobody"), []),
        (BattleFilter(prompt="p2"), [3, 4, 5]),
        (BattleFilter(dimension="factuality"), [0, 1, 2, 3, 4, 5]),
        (BattleFilter(dimension="beauty"), []),
        (BattleFilter(outcome="decided"), [0, 1]),
        (BattleFilter(outcome="tie"), [2]),
        (BattleFilter(outcome="inconsistent"), [3]),
        (BattleFilter(outcome="failed"), [4]),
        (BattleFilter(outcome="pending"), [5]),
        (BattleFilter(disputed="1"), [3]),
        (BattleFilter(entrant="amy", prompt="p1", outcome="tie"), [2]),
    ],
)
def test_a_filter_keeps_what_fits_all_of_it(chosen: BattleFilter, places: list[int]) -> None:
    """Names that are not there find nothing."""
    assert index().find(chosen) == places


def test_text_is_sought_in_prompts_responses_and_replies_in_any_case() -> None:
    """Whoever remembers a phrase does not remember where it stood."""
    events = history(cup(), "a", "b")
    told = [
        replace(event, text="In der Straße")
        if isinstance(event, ResponseGenerated) and event.entrant_id == "zoe"
        else event
        for event in events
    ]
    replied = [replace(e, reply="Odd Socks") if e is events[-3] else e for e in events]

    in_responses, in_replies = viewed(*told).index, viewed(*replied).index

    assert index().find(BattleFilter(text="QUESTION P2")) == [3, 4, 5]
    assert in_responses.find(BattleFilter(text="STRASSE")) == [0, 1, 3, 4]
    assert in_replies.find(BattleFilter(text="odd socks")) == [1]
    assert in_replies.find(BattleFilter(text="odd shoes")) == []


def test_a_filter_is_what_an_address_says() -> None:
    """So a search can be bookmarked and sent to somebody else's viewer."""
    chosen = BattleFilter.of({"entrant": " zoe ", "page": "3", "text": ""})

    assert chosen == BattleFilter(entrant="zoe")
    assert chosen.query == {"entrant": "zoe"}


@pytest.mark.parametrize("sought", ["cat", "at", "the cat", "sat on the m", "THE", "e", "dog"])
def test_a_search_finds_what_reading_every_text_would(sought: str) -> None:
    """Blanks and lines' ends are one blank, and both responses belong to a battle."""
    texts = {"zoe": "The cat sat\n on the  mat", "amy": "concatenate", "kim": "a mat on THE cat"}
    events = [
        replace(event, text=texts[event.entrant_id])
        if isinstance(event, ResponseGenerated)
        else event
        for event in history(cup(1))
    ]

    found = viewed(*events).index.find(BattleFilter(text=sought))

    plain = {name: " ".join(text.casefold().split()) for name, text in texts.items()}
    holders = {name for name, text in plain.items() if sought.casefold() in text}
    pairs = [("zoe", "amy"), ("zoe", "kim"), ("amy", "kim")]
    assert found == [place for place, pair in enumerate(pairs) if holders & {*pair}]
