"""The table of judges: each figure with what it rests on."""

from commands.cli.tables.reliability import agreement_table
from commands.cli.tables.table import Table
from projections.reliability.agreement import agreement
from projections.verdicts.policies import CONCATENATE, RECORDED, Rule
from tests.builders import known
from tests.projections.juries import A, B, court, heard
from tests.projections.worlds import everything

AGREEMENT = (
    "agreement",
    "agreement by chance",
    "Cohen's kappa",
    "agreement of all",
    "agreement of all by chance",
    "Fleiss' kappa",
)
COUNTED = {
    "order consistency": "pairs",
    "share of A": "verdicts",
    "tie rate": "verdicts",
    "unreadable rate": "queries",
    "empty rate": "queries",
    "refused rate": "queries",
    "truncated rate": "queries",
    "Spearman's rho": "entrants",
    "Kendall's tau-b": "entrants",
}


def compared(rule: Rule) -> Table:
    """Return the table of two judges who judged two of six pairs, and agree on one."""
    state = known(*heard(court(2), [A, A], [A, B]))
    measures = agreement(state, everything(state), state.panel, rule)
    return agreement_table(measures, by_order=rule.policy == CONCATENATE)


def n_of(table: Table, measure: str) -> list[object]:
    """Return on how many each figure of a name rests."""
    return [row["n"] for row in table.rows if row["measure"] == measure]


def cases_of(table: Table) -> dict[object, object]:
    """Return what the n of each measure counts."""
    return {row["measure"]: row["n_of"] for row in table.rows}


def test_what_agreement_rests_on_is_told_as_it_is_counted() -> None:
    """By concatenate one pair is compared twice; taken for two pairs it would look surer."""
    usual, by_order = compared(RECORDED), compared(Rule("concatenate"))

    assert n_of(usual, "order consistency") == n_of(by_order, "order consistency") == [2, 2]
    assert (n_of(usual, "agreement"), n_of(by_order, "agreement")) == ([2], [4])
    assert cases_of(usual) == {**COUNTED, **dict.fromkeys(AGREEMENT, "pairs")}
    assert cases_of(by_order) == {**COUNTED, **dict.fromkeys(AGREEMENT, "orders")}
