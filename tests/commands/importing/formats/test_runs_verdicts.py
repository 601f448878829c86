"""What a run writes to verdicts/, read as battles."""

from pathlib import Path

import pytest

from commands.importing.formats.catalogue import FORMATS
from commands.importing.formats.rows import Fields
from ledger.events.imports import BattlesImported, ImportedBattle
from projections.artifacts.files import files_of
from projections.battles.columns import Battles, battles_of
from projections.battles.imported import battles_of_set
from tests.support.builders.events import key
from tests.support.builders.formats import battles_of_rows, read_file, why_not
from tests.support.builders.worlds import SLOT_A, TIE, A, B, answered, cup, heard, results

RUN = results(
    *heard(answered(cup(2)), [A, B, TIE, SLOT_A, ("A", "TIE"), ("TIE", "A")]),
)


def row(**fields: object) -> Fields:
    """Return a pair that the judge was not asked about: both responses are the same."""
    plain = {"prompt_id": "p1", "entrant_a": "x", "entrant_b": "y", "outcome": "tie", "raw": []}
    return plain | fields


def sides(battles: Battles) -> list[tuple[str, str, float]]:
    """Return who met whom, and the score of the first."""
    pairs = zip(battles.a, battles.b, battles.score, strict=True)
    return [(battles.entrants[a], battles.entrants[b], float(score)) for a, b, score in pairs]


def test_a_runs_verdicts_come_back_as_the_battles_that_it_rated(tmp_path: Path) -> None:
    """Who takes a colleague's files gets the colleague's ratings: each verdict by itself."""
    dimension = next(iter(RUN.settlements))
    (tmp_path / "found.jsonl").write_bytes(dict(files_of(RUN))[f"verdicts/{dimension}.jsonl"])

    read = read_file("verdicts", tmp_path / "found.jsonl")

    battles = [battle for battle in read if isinstance(battle, ImportedBattle)]
    event = BattlesImported.of(
        battles, file_digest=key("found"), mapping=("verdicts", 1), chunk=1, n_skipped=0
    )
    rated = battles_of(RUN.settlements[dimension]).by_verdicts("half")
    assert len(read) == len(battles) == len(rated) > 0
    assert sides(battles_of_set([event]).rated(soft=True)) == sides(rated)


def test_the_judge_the_source_and_the_lengths_of_both_responses_are_kept() -> None:
    """The texts themselves stay in the file."""
    pair = {"source": "medmcqa", "response_a": "yes", "response_b": "h\u00e9"}
    raw = [{"judge_model": "opus", "pair": pair}, {"judge_model": "opus", "pair": pair}]

    (battle,) = battles_of_rows("verdicts", row(outcome="b", raw=raw))

    assert battle == ImportedBattle(
        *("x", "y", "model_b", None, "p1", "llm-judge", "opus"),
        categories=("medmcqa",),
        length_a=3,
        length_b=2,
    )


def test_identical_responses_tied_without_a_judge() -> None:
    """Nobody was asked, and it counts all the same."""
    assert battles_of_rows("verdicts", row(basis="identical")) == [
        ImportedBattle("x", "y", "tie", None, "p1", "llm-judge", None)
    ]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (
            {
                "outcome": "inconsistent",
                "raw": [{"judge_model": "opus", "verdict": "?", "pair": {}}],
            },
            "verdict is '?', but must be one of A, B, TIE",
        ),
        ({"outcome": "A"}, "outcome is 'A', but must be one of a, b, tie, inconsistent"),
        ({"raw": None}, "raw: must be a list, not null"),
        ({"raw": [{}]}, "judge_model is None, but must be a text"),
    ],
)
def test_a_row_that_is_no_verdict_is_told(wrong: dict[str, object], why: str) -> None:
    """One of tap's, say, which names no outcome."""
    assert why_not("verdicts", {**row(), **wrong}) == why


def test_each_dimension_is_a_set() -> None:
    """Their battles on one prompt would pass for votes of several judges."""
    assert FORMATS["verdicts"].set_of(Path("runs/pilot/verdicts/utility.jsonl")) == (
        "verdicts-utility"
    )
