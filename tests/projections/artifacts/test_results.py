"""What every artifact of a run is written from."""

import pytest
from msgspec.structs import replace

from ledger.events.registration import JudgeSettings
from ledger.identity import JudgeId, PromptId
from projections.artifacts.results import results_of
from tests.support.builders.events import judge, known, opened, prompt, rubric
from tests.support.builders.worlds import cup, history, publication, results


def test_results_are_grouped_as_the_tournament_lists_its_dimensions() -> None:
    """Every file and table of a run has them in the same order."""
    rubrics = [rubric("utility", needs_gold=False), rubric("factuality")]

    found = results(*opened(rubrics=rubrics, prompts=[prompt(gold=None)]))

    assert list(found.settlements) == list(found.standings) == ["utility", "factuality"]
    assert [len(group) for group in found.settlements.values()] == [1, 0]


def test_only_the_prompts_of_the_terms_are_settled() -> None:
    """A pilot is rated on its own prompts, also when the headline has judged them all."""
    tournament = known(*history(cup(), "a", "a", "a", "b", "b", "b"))
    whole = publication(tournament)
    pilot = replace(whole, terms=replace(whole.terms, prompts=(PromptId("p2"),)))

    (settlements,) = results_of(tournament, pilot).settlements.values()

    assert [settlement.status for settlement in settlements] == ["b", "b", "b"]


def test_the_judge_of_the_terms_settles() -> None:
    """Two judges in one ledger must not be mixed in one rating."""
    panel: list[JudgeSettings] = [judge(), judge("other", model="other")]
    tournament = known(*history(opened(judges=panel), "a"))
    ours = publication(tournament)
    theirs = replace(ours, terms=replace(ours.terms, judge=JudgeId("other")))

    accounts = [
        standing.account.decided
        for claim in (ours, theirs)
        for standing in results_of(tournament, claim).standings.values()
    ]

    assert accounts == [1, 0]


def test_a_judge_that_is_not_on_the_panel_has_no_results() -> None:
    """An empty table would look like a judge that decided nothing."""
    tournament = known(*cup())
    claim = publication(tournament)
    strange = replace(claim, terms=replace(claim.terms, judge=JudgeId("nobody")))

    with pytest.raises(KeyError, match="nobody"):
        results_of(tournament, strange)
