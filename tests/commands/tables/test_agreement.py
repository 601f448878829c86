"""The table of judges: each figure with what it rests on."""

from commands.cli.tables.reliability import agreement_table
from commands.cli.tables.table import Table
from projections.reliability.agreement import agreement
from projections.verdicts.policies import RECORDED, Rule
from tests.builders import known
from tests.projections.juries import A, B, court, heard
from tests.projections.worlds import everything


def compared(rule: Rule) -> Table:
    """Return the table of two judges who judged two of six pairs, and agree on one."""
    state = known(*heard(court(2), [A, A], [A, B]))
    return agreement_table(agreement(state, everything(state), state.panel, rule))


def n_of(table: Table, measure: str) -> list[object]:
    """Return on how many each figure of a name rests."""
    return [row["n"] for row in table.rows if row["measure"] == measure]


def test_what_agreement_rests_on_is_told_as_it_is_counted() -> None:
    """By concatenate one pair is compared twice; taken for two pairs it would look surer."""
    usual, by_order = compared(RECORDED), compared(Rule("concatenate"))

    assert n_of(usual, "order consistency") == n_of(by_order, "order consistency") == [2, 2]
    assert (n_of(usual, "agreement"), n_of(by_order, "agreement")) == ([2], [4])
    assert "agreement (by concatenate their orders for agreement)" in by_order.notes[0]
