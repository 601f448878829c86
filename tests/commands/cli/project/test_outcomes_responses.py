"""The table of responses: how sure a Hydra was, and how its heads decided."""

import json
from typing import Any

from msgspec.structs import replace

from commands.cli.project.outcomes import responses_table
from commands.cli.tables.render import Format
from commands.cli.tables.table import Table
from ledger.events.responses import Diagnostics
from tests.support.builders.events import entrant, hydra, key, known, opened, responses
from tests.support.goldens.screens import rendered

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
