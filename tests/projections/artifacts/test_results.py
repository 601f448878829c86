"""What every artifact of a run is written from."""

import json

import pytest
from msgspec.structs import replace

from ledger.events.imports import ImportedBattle
from ledger.events.ratings import BradleyTerryParameters
from ledger.events.registration import JudgeSettings
from ledger.identity import JudgeId, PromptId
from projections.artifacts.files import line_files, pairwise_winrates
from projections.artifacts.results import results_of
from projections.battles.imported import battles_of_set
from projections.ratings.bradley_terry.rate import rate
from tests.support.builders.battles import of_file
from tests.support.builders.events import entrant, judge, known, opened, prompt, rubric, verdict
from tests.support.builders.worlds import (
    SLOT_A,
    TIE,
    A,
    B,
    Said,
    answered,
    cup,
    failure,
    heard,
    history,
    matches_of,
    publication,
    results,
)


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


def test_a_run_of_an_earlier_version_is_rated_as_it_was() -> None:
    """By outcomes, with prompts told apart by id: a replay must give the same files."""
    prompts = [prompt(f"p{n}", text="Why?") for n in range(3)]
    entrants = [entrant(name, temperature=0.7) for name in ("base", "poe")]
    opening = opened(prompts=prompts, entrants=entrants)
    tournament = known(*history(opening, "a", "inconsistent", "b"))
    now = publication(tournament)
    then = replace(now, terms=replace(now.terms, rated_by="outcomes"))

    by_verdicts, by_outcomes = (results_of(tournament, each) for each in (now, then))

    [verdicts] = by_verdicts.comparisons.values()
    [outcomes] = by_outcomes.comparisons.values()
    assert verdicts.score.tolist() == [1.0, 0.5, 0.0]
    assert outcomes.score.tolist() == pytest.approx([1.0, float("nan"), 0.0], nan_ok=True)
    assert (verdicts.prompts, outcomes.prompts) == (("p0",), ("p0", "p1", "p2"))
    assert len([*line_files(by_verdicts.pairs)["battles.jsonl"]]) == 3
    assert len([*line_files(by_outcomes.pairs)["battles.jsonl"]]) == 2
    row = pairwise_winrates(by_verdicts).splitlines()[1]
    assert row.startswith(b"factuality,base,poe,1,1,0,1,0,0.5")


@pytest.mark.no_cover
def test_the_exported_battles_give_the_same_ratings_again() -> None:
    """Whoever rates the file has each verdict, one in one order only with half the weight."""
    ways: list[Said] = [A, B, TIE, SLOT_A, ("A", "TIE"), ("TIE", "A"), B, A]
    events = heard(answered(cup(7)), [*ways, *ways])
    last = matches_of(known(*events))[20]
    run = results(*events, verdict(last.forward_key, "A"), failure(last.swapped))
    rows = [*map(json.loads, line_files(run.pairs)["battles.jsonl"])]

    kept = ("model_a", "model_b", "winner", "pref", "question_id", "source")
    read = [
        ImportedBattle(
            **{name: row[name] for name in kept}, judge_model=None, weight=row.get("weight", 1.0)
        )
        for row in rows
    ]
    again = rate(battles_of_set([of_file(read)]).rated(soft=True), BradleyTerryParameters())

    [board] = run.boards
    for name in ("rating", "lower", "upper", "covariance"):
        assert getattr(again, name).tolist() == getattr(board.ratings, name).tolist()
