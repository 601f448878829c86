"""What `project matches`, `responses` and `spend` show: what is not known is shown as such."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from commands.cli.project.outcomes import chosen_matches, responses_table, spend_table
from commands.cli.tables.render import Format
from commands.cli.tables.table import Table
from commands.errors import ConfigurationError
from commands.reading.judged_tournament import JudgedTournament
from ledger.events.money import Usage
from ledger.events.registry import Event
from ledger.events.responses import Diagnostics
from projections.battles.imported_sets import Where
from projections.fold import fold
from projections.tournament.spend import spend_of
from tests.support.builders.events import (
    STREAM,
    entrant,
    hydra,
    key,
    known,
    opened,
    recorded,
    responses,
)
from tests.support.builders.money import USED, paid, paid_in_vain, world
from tests.support.builders.worlds import Fate, cup, failure, history, matches_of
from tests.support.goldens.screens import rendered
from tests.support.specification import after

FATES: tuple[Fate, ...] = ("a", "tie", "inconsistent", "refused", "b", "pending")


def listed(filters: Where) -> list[int]:
    """Return the places in the match list of those that are listed, of two prompts of a cup."""
    state = known(*history(cup(), *FATES))
    source = JudgedTournament(state, state.panel[0], Path(), None)
    (every,) = source.settlements.values()
    return [every.index(each) for each in chosen_matches(every, filters)]


@pytest.mark.parametrize(
    ("filters", "places"),
    [
        ({}, [0, 1, 2, 3, 4, 5]),
        ({"prompt": ["p2"]}, [3, 4, 5]),
        ({"prompt": ["p2", "p1"]}, [0, 1, 2, 3, 4, 5]),
        ({"entrant": ["kim"]}, [1, 2, 4, 5]),
        ({"entrant": ["kim", "zoe"]}, [1, 4]),
        ({"outcome": ["decided"]}, [0, 4]),
        ({"outcome": ["failed", "tie"]}, [1, 3]),
        ({"outcome": ["tie"], "entrant": ["amy"]}, []),
    ],
)
def test_a_filter_leaves_what_it_names(filters: Where, places: list[int]) -> None:
    """Of 100,000 battles nobody reads more than a few."""
    assert listed(filters) == places


@pytest.mark.parametrize(
    ("filters", "why"),
    [
        ({"prompt": ["p3"]}, "--where: prompt 'p3' is not known; did you mean"),
        ({"entrant": ["kin"]}, "--where: entrant 'kin' is not known; did you mean 'kim'"),
        ({"outcome": ["tied"]}, "--where: outcome 'tied' is not known; did you mean 'tie'"),
        ({"entrant": ["amy", "kim", "zoe"]}, "a match has two entrants; name two of amy, kim, zoe"),
    ],
)
def test_a_filter_that_fits_no_match_is_an_error(filters: Where, why: str) -> None:
    """An empty list would look like an answer."""
    with pytest.raises(ConfigurationError, match=why):
        listed(filters)


RECORDED = ("draft_head_idx", "seed", "bypass_jury", "n_resampled", "n_tokens_generated")
DECIDED = Diagnostics(
    draft_head_idx=1,
    bypass_jury=False,
    entropies=(0.5, 0.0, 1.25),
    resampled_at=(0, 2),
    rejected_tokens=(17, 4),
)


OPENING = opened(entrants=[entrant("base"), entrant("poe", loader="hydra", hydra=hydra())])


def played(*, p_correct: float | None = 0.8125) -> Table:
    """Return the responses of plain weights and of a Hydra."""
    plain, decided = responses(known(*OPENING))
    decided = replace(decided, p_correct=p_correct, diagnostics=DECIDED)
    return responses_table(known(*OPENING, plain, decided))


def rows_of(table: Table) -> list[dict[str, Any]]:
    """Return the rows as machines read them."""
    found: list[dict[str, Any]] = json.loads(rendered(table, Format.JSON))["rows"]
    return found


def test_machines_read_how_the_heads_decided() -> None:
    """The five keys that the customer's records have, and what was measured at each token.

    A program reads all rows alike: without heads nobody drafted, and nothing was resampled.
    """
    base, poe = rows_of(played())

    decided, plain = poe["diagnostics"], base["diagnostics"]
    assert (base["p_correct"], poe["p_correct"]) == (None, 0.8125)
    assert {name: decided[name] for name in RECORDED} == {
        "draft_head_idx": 1,
        "seed": 2053764746,
        "bypass_jury": False,
        "n_resampled": 2,
        "n_tokens_generated": 3,
    }
    assert (decided["entropies"], decided["rejected_tokens"]) == ([0.5, 0.0, 1.25], [17, 4])
    assert plain.keys() == decided.keys()
    unknown = {name for name, value in plain.items() if value is None}
    assert unknown == {"draft_head_idx", "bypass_jury"}
    assert plain["n_resampled"] == 0


def test_what_was_imported_says_from_which_file_and_hides_no_gap() -> None:
    """A cache tells which head drafted, and not which drafts were rejected: that is no zero."""
    plain, decided = (
        replace(each, imported_from=key("a cache")) for each in responses(known(*OPENING))
    )
    decided = replace(decided, diagnostics=Diagnostics(draft_head_idx=1, bypass_jury=False))

    rows = rows_of(responses_table(known(*OPENING, plain, decided)))

    assert [row["imported_from"] for row in rows] == [key("a cache")] * 2
    assert [row["diagnostics"]["n_resampled"] for row in rows] == [0, None]


def test_a_response_that_is_owed_has_no_diagnostics() -> None:
    """Zeros would pass for a response that is there."""
    row, *_ = rows_of(responses_table(known(*opened())))

    assert (row["text"], row["p_correct"], row["diagnostics"]) == (None, None, None)


def test_the_terminal_shows_how_sure_only_where_one_was_asked() -> None:
    """Most tournaments have no uncertainty head, and a column of dashes says nothing."""
    asked, unasked = rendered(played()), rendered(played(p_correct=None))

    assert "P(correct)" in asked
    assert "0.812" in asked
    assert "P(correct)" not in unasked


def spent(*events: Event) -> Table:
    """Return the table of what events spent."""
    spend = fold(spend_of(STREAM), recorded(events))
    return spend_table([*spend.bills.items()], spend.total)


FAILED: Final = matches_of(after(*world()))[0].forward
WRITTEN: Final = Usage(n_input=100, n_output=200, n_cache_write_1h=9_000)
LOST: Final = replace(failure(FAILED, "errored"), fate="perhaps billed", worst_usd=0.25)


@pytest.mark.parametrize(
    ("events", "notes"),
    [
        ((), ("nothing was spent",)),
        (
            (paid(key("q"), USED, by="opus"), paid_in_vain(FAILED, USED)),
            (
                "2 replies for $0.0092",
                "$0.0046 of it for 1 reply without a verdict",
                "the cache saved $0.0068",
            ),
        ),
        ((paid(key("q"), WRITTEN),), ("1 reply for $0.0764", "the cache cost $0.0360")),
        (
            (paid(key("q"), USED), paid_in_vain(FAILED, USED, None)),
            (
                "2 replies for $?",
                "$? of it for 1 reply without a verdict",
                "1 reply came while the model had no price, and the others for $0.0046: caps do",
                "the cache saved $0.0034",
            ),
        ),
        ((LOST,), ("1 request without an answer, or without its tokens, may be billed: $0.25",)),
        ((LOST, LOST), ("2 requests without an answer, or without its tokens, may be billed",)),
    ],
)
def test_what_was_spent_is_said_with_what_failed_and_what_the_cache_saved(
    events: Sequence[Event], notes: Sequence[str]
) -> None:
    """Per reply 100*4 + 900*0.2 + 200*20 = 4,580 millionths; a read saves 900*(4 - 0.2) = 3,420.

    What failed is looked at to save money: 900,000 tokens must not read as $0.00. Where nobody
    knows, `nothing was spent` would be a guess.
    """
    found = spent(*world(), *events).notes

    for note, said in zip(found, notes, strict=True):
        assert note.startswith(said)


def test_an_unknown_price_is_a_question_mark_and_null() -> None:
    """It must never read as $0."""
    table = spent(*world(), paid(key("q"), USED, None), paid(key("p"), USED))
    (row,) = table.rows

    assert (row["usd"], row["failed_usd"], row["cache_saved_usd"]) == (None, None, None)
    assert (row["n_unpriced"], row["n_input"]) == (1, 200)
    assert rendered(table).count("?") == 4
    assert "0.0000" not in rendered(table)


def test_requests_that_may_have_been_billed_are_counted() -> None:
    """In a column of their own, if there are any."""
    table = spent(*world(), LOST)

    assert [row["n_maybe_billed"] for row in table.rows] == [1]
    assert table.facts["total"]["n_maybe_billed"] == 1  # type: ignore[index, call-overload]  # JSON
    assert "Maybe billed" in rendered(table)
    assert "Maybe billed" not in rendered(spent(*world(), paid(key("q"), USED)))
