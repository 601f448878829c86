"""How far judges agree, with each other and with people, and what they may be used for."""

import json
from collections.abc import Hashable

import pytest

from commands.cli.project.agreement import agreement_table, use_of
from commands.cli.tables.render import Format
from commands.cli.tables.table import Table
from projections.reliability.agreement import AgreedWith, JudgeTest, agreement
from projections.reliability.alternative_annotator import Votes, alternative_annotator_test
from projections.verdicts.policies import CONCATENATE, RECORDED, Rule
from tests.support.builders.events import known
from tests.support.builders.worlds import A, B, court, everything, heard
from tests.support.goldens.screens import rendered

AGREEMENT = (
    "agreement",
    "agreement by chance",
    "Cohen's kappa",
    "agreement of all",
    "agreement of all by chance",
    "Fleiss' kappa",
    "Krippendorff's alpha",
)
COUNTED = {
    "order consistency": "pairs",
    "opposite winners": "pairs",
    "a tie beside a win": "pairs",
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


def cases_of(table: Table) -> dict[object, object]:
    """Return what the n of each measure counts."""
    return {row["measure"]: row["n_of"] for row in table.rows}


def test_what_agreement_rests_on_is_told_as_it_is_counted() -> None:
    """By concatenate one pair is compared twice; taken for two pairs it would look surer."""
    usual, by_order = compared(RECORDED), compared(Rule("concatenate"))

    for table, n in ((usual, 2), (by_order, 4)):
        rests_on = [(row["measure"], row["n"]) for row in table.rows]
        assert rests_on.count(("order consistency", 2)) == 2
        assert ("agreement", n) in rests_on
    assert cases_of(usual) == {**COUNTED, **dict.fromkeys(AGREEMENT, "pairs")}
    assert cases_of(by_order) == {**COUNTED, **dict.fromkeys(AGREEMENT, "orders")}


def beside_people(said: str, *, n_people: int = 3, by_prompt: int = 1) -> JudgeTest:
    """Return the test of a judge beside people who all find that a won."""
    n, everybody = len(said), ("ann", "bob", "cy")[:n_people]
    all_a: Votes = dict.fromkeys(range(n), "a")
    people = dict.fromkeys(everybody, all_a)
    prompts: dict[Hashable, Hashable] = {place: place // by_prompt for place in range(n)}
    found = alternative_annotator_test(dict(enumerate(said)), people, prompts)
    return JudgeTest("utility", "opus", found)


@pytest.mark.parametrize(
    ("said", "use"),
    [
        ("a" * 40, "it may replace an annotator, even a crowd worker (margin 0.1)."),
        ("bb" + "a" * 48, "even a crowd worker"),
        ("bbb" + "a" * 47, "if these are skilled annotators or experts (margin 0.15)."),
        ("bbb" + "a" * 37, "if these are experts (margin 0.2)."),
        ("bbb" + "a" * 27, "it should not replace an annotator; about 25 more votes like these"),
        ("b" * 40, "more votes like these would not change that. Use it together with people's"),
    ],
)
def test_a_sentence_says_what_a_judge_may_be_used_for(said: str, use: str) -> None:
    """The margin stands for whom it may replace; a rate alone would say it to nobody."""
    assert use_of(beside_people(said)).startswith("utility, opus: it ")
    assert use in use_of(beside_people(said))


def test_a_sentence_says_which_votes_are_lacking() -> None:
    """Nobody knows by heart how many it takes."""
    lacking = use_of(beside_people("a" * 30, n_people=2))
    few = use_of(beside_people("a" * 30, by_prompt=10))
    alone = beside_people("a" * 30, n_people=1)._replace(alone=AgreedWith("gold", 30, 27))

    assert "It takes 30 votes more, at least: 3 annotators with 30 battles each" in lacking
    assert lacking.endswith("(now: ann 30, bob 30).")
    assert "It takes votes on 6 prompts, at least" in few
    assert use_of(alone) == (
        "utility, opus: it agrees with gold on 27 of 30 battles (90%); whether it may replace an"
        " annotator takes the votes of 3."
    )


def test_the_test_is_shown_and_explained_and_whole_in_data() -> None:
    """The table has rates; p of each annotator at each margin is for whoever checks it."""
    table = agreement_table((), tests=[beside_people("bbb" + "a" * 27)])

    assert any(note.startswith("Advantage: ") for note in table.notes)
    assert cases_of(table)["winning rate at 0.2"] == "annotators"
    assert cases_of(table)["advantage of the judge"] == "battles"
    (found,) = json.loads(rendered(table, Format.JSON))["alternative_annotator_tests"]
    assert found["annotators"][0]["p"]["0.2"] == pytest.approx(0.04155, abs=5e-5)
    assert found["results"][2]["may_replace"] is False
