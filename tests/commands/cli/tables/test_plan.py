"""What remains to be asked, and what it costs, in words."""

import pytest
from msgspec.structs import replace

from commands.cli.tables.plan import (
    cost_fields,
    cost_notes,
    missing_verdicts_table,
    requests_table,
    requests_text,
)
from commands.decisions.recorder import MissingVerdicts
from commands.judging.preview import preview_of
from ledger.identity import Dimension
from tests.support.builders.events import judge
from tests.support.builders.money import OPUS_JUDGE, USED, cost_of, paid, put, world
from tests.support.builders.worlds import matches_of
from tests.support.specification import after


def test_a_plan_says_dollars_in_each_way_and_what_they_rest_on() -> None:
    """An estimate that passes for a measurement is worse than none."""
    notes = [*cost_notes(cost_of(*world(), cap_usd=25.0))]

    assert [note.split(":")[0] for note in notes[:4]] == [
        "one by one, no cache",
        "one by one, cache 5m",
        "in batches, no cache",
        "in batches, cache 5m (as set)",
    ]
    assert all(", at worst $" in note for note in notes[:4])
    assert notes[4].startswith("tokens: estimated from bytes")
    assert notes[5] == "$0.00 spent, cap $25.00"
    assert len(notes) == 6


def test_a_plan_after_replies_is_no_guess() -> None:
    """The words change as soon as something was measured."""
    question = matches_of(after(*world()))[0].forward
    notes = [*cost_notes(cost_of(*world(), paid(question.query_key, USED, by="opus")))]

    assert notes[4] == "tokens: from this judge's recorded replies"
    assert notes[5] == "$0.0046 spent, no cap"


def test_replies_of_unknown_price_are_told_beside_what_is_spent() -> None:
    """They cost something, and "$0.00 spent" would deny it."""
    match = matches_of(after(*world()))[0]
    sent = put(match, match.forward, by="opus")
    reply = paid(match.forward.query_key, USED, None, by="opus")
    cost, of_another = cost_of(*world(), sent, reply), cost_of(*world(), reply)

    assert "$0.00 spent, and 1 reply of unknown price, no cap" in cost_notes(cost)
    assert cost_fields(cost)["n_unpriced"] == 1
    assert cost_fields(of_another)["n_unpriced"] == 0


@pytest.mark.parametrize(
    ("model", "begins", "ends"),
    [
        (
            "claude-haiku-4-5",
            "utility: no caching, since its prefix of ",
            "tokens is shorter than the 4096 tokens that claude-haiku-4-5 needs",
        ),
        ("claude-haiku-5-5", "it is unknown how long a prefix must be for ", "5-5 to cache it"),
    ],
)
def test_a_plan_names_what_no_cache_will_keep(model: str, begins: str, ends: str) -> None:
    """It names dimension, tokens and limit, so that a rubric may be made longer."""
    by = replace(OPUS_JUDGE, model=model)
    last = [*cost_notes(cost_of(*world(by), by=by))][-1]

    assert last.startswith(begins)
    assert last.endswith(ends)


def test_a_plan_shows_tokens_for_each_dimension_of_a_judge_that_costs() -> None:
    """A dimension without a query takes none; dollars beside a free judge would only frighten."""
    rows = [
        MissingVerdicts(Dimension(name), n_pairs=3, n_queries=6, n_waiting=0)
        for name in ("factuality", "none")
    ]

    free, table = missing_verdicts_table(rows), missing_verdicts_table(rows, cost_of(*world()))

    assert [row["n_output"] for row in table.rows] == [6 * 400, 0]
    assert free.facts["cost"] is None
    assert [column.key for column in free.columns][-1] == "n_waiting"


@pytest.mark.parametrize(("provider", "why"), [("hf", "chat template"), ("reference", "gold ans")])
def test_a_judge_on_this_machine_is_shown_its_texts_and_no_request(provider: str, why: str) -> None:
    """A rubric may be written before a judge is chosen; what nobody is sent is not made up."""
    match = matches_of(after(*world()))[0]
    preview = preview_of(match, judge("mine", provider=provider), None)

    text = requests_text([preview, preview])
    (row,) = requests_table([preview]).rows

    assert text.count(f"judge mine ({provider})\n----- request -----\nno request is sent: ") == 2
    assert why in text
    assert match.forward.system in text
    assert row["request"] is None
