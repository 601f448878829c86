"""Battles in the shape of JudgeArena's."""

from ledger.events.imports import CodedColumn
from ledger.identity import PromptId
from projections.artifacts.judgearena import Fields, of_imported, of_settlements
from projections.tournament.settlement import settle
from projections.verdicts.policies import CONCATENATE, RECORDED, Rule
from tests.battles import battles
from tests.builders import judge, known
from tests.projections.worlds import Fate, cup, history


def cup_records(*fates: Fate, rule: Rule = RECORDED) -> list[Fields]:
    """Return the battles of a cup whose matches met fates."""
    tournament = known(*history(cup(), *fates))
    prompts = [prompt.prompt_id for prompt in tournament.bank]
    return [*of_settlements(settle(tournament, prompts, judge(), rule), "chrF2")]


def test_a_pairing_that_was_decided_or_tied_is_a_battle() -> None:
    """Its preference says the same: JudgeArena rates by preferences, and drops what has none."""
    zoe_beats_amy = {
        "model_a": "zoe",
        "model_b": "amy",
        "winner": "model_a",
        "pref": 0.0,
        "source": "llm-judge",
        "judge_model": "chrF2",
        "question_id": "p1",
    }

    records = cup_records("a", "b", "tie", "inconsistent", "refused", "pending")

    assert records[0] == zoe_beats_amy
    assert [(each["winner"], each["pref"]) for each in records] == [
        ("model_a", 0.0),
        ("model_b", 1.0),
        ("tie", 0.5),
    ]


def test_each_order_may_be_a_battle_that_names_the_pair_alike() -> None:
    """JudgeArena's swap mode `both`: twice the rows, the first model the same in both."""
    records = cup_records("inconsistent", "b", rule=Rule(CONCATENATE))

    assert [(each["model_a"], each["winner"]) for each in records] == [
        ("zoe", "model_a"),
        ("zoe", "model_b"),
        ("zoe", "model_b"),
        ("zoe", "model_b"),
    ]


def test_a_jury_has_no_model() -> None:
    """A field that has nothing to say is left out."""
    tournament = known(*history(cup(), "a"))
    settlements = settle(tournament, [PromptId("p1")], judge())

    (record,) = of_settlements(settlements, None)

    assert "judge_model" not in record


def test_an_imported_battle_is_told_as_it_was() -> None:
    """And an unread reply as JudgeArena tells it; people who gave no verdict it has no word for."""
    imported = battles(
        ("x", "y", "x", "x"),
        ("y", "z", "z", "y"),
        winners=CodedColumn.of(["model_b", "no verdict", "tie (bothbad)", "no verdict"]),
        prefs=CodedColumn.of([0.75, None, None, None]),
        prompts=CodedColumn.of(["q1", None, "q1", None]),
        sources=CodedColumn.of(["llm-judge", "llm-judge", "human", "human"]),
        judges=CodedColumn.of(["m", "m", None, None]),
        weights=CodedColumn.of([3.0, 1.0, 1.0, 1.0]),
    )

    records = [*of_imported([imported])]

    assert records == [
        {
            "model_a": "x",
            "model_b": "y",
            "winner": "model_b",
            "pref": 0.75,
            "source": "llm-judge",
            "judge_model": "m",
            "question_id": "q1",
            "weight": 3.0,
        },
        {
            "model_a": "y",
            "model_b": "z",
            "winner": "tie",
            "pref": None,
            "source": "llm-judge",
            "judge_model": "m",
        },
        {
            "model_a": "x",
            "model_b": "z",
            "winner": "tie (bothbad)",
            "source": "human",
            "question_id": "q1",
        },
        {"model_a": "x", "model_b": "y", "winner": "no verdict", "source": "human"},
    ]
