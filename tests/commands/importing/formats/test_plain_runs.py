"""Verdicts of whole runs: tourney's and tap's."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.importing.formats.catalogue import FORMATS
from commands.importing.formats.rows import BadRow, Fields
from ledger.events.imports import BattlesImported, ImportedBattle, Winner
from projections.artifacts.files import files_of
from projections.battles.columns import Battles, battles_of
from projections.battles.imported import battles_of_set
from tests.support.builders.events import key
from tests.support.builders.formats import (
    battles_of_rows,
    mirrored,
    read_file,
    read_rows,
    read_text,
    why_not,
)
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


_CACHE = """\
{"cache_key": "8ff7ffcea927", "rubric_version": "v2", "judge_model": "opus", "verdict": "A", \
"reasoning": "The first.\\nVERDICT: A", "timestamp": "2026-04-26T10:00:00+00:00", "metadata": \
{"dimension": "factuality", "prompt_id": "srcA_00008", "entrant_a": "base", "entrant_b": "poe", \
"position_swap": false, "source": "medmcqa_open", "input_tokens": 1500, "output_tokens": 90}}
{"cache_key": "517427ab3f96", "rubric_version": "v2", "judge_model": "opus", "verdict": "A", \
"reasoning": "The first.\\nVERDICT: A", "timestamp": "2026-04-26T10:00:01+00:00", "metadata": \
{"dimension": "factuality", "prompt_id": "srcA_00008", "entrant_a": "base", "entrant_b": "poe", \
"position_swap": true, "source": "medmcqa_open", "input_tokens": 1500, "output_tokens": 90}}
{"cache_key": "30f62be64f8b", "rubric_ver"""


def cached(key: str = "k", verdict: str = "A", **metadata: object) -> dict[str, Any]:
    """Return a cached judgment of base and poe, in the forward order."""
    about = {"prompt_id": "p1", "entrant_a": "base", "entrant_b": "poe", "position_swap": False}
    return {
        "cache_key": key,
        "judge_model": "opus",
        "verdict": verdict,
        "metadata": about | metadata,
    }


def as_run(forward: dict[str, Any], swapped: dict[str, Any]) -> Fields:
    """Return the two cached judgments of a pair as a run writes them."""
    pair = {key: forward["metadata"][key] for key in ("prompt_id", "entrant_a", "entrant_b")}
    orders = [
        {key: value for key, value in each.items() if key != "metadata"}
        | {"pair": pair, "position_swap": each["metadata"]["position_swap"]}
        for each in (forward, swapped)
    ]
    return {**pair, "dimension": "factuality", "winner": None, "inconsistent": True, "raw": orders}


@pytest.mark.parametrize(
    ("format_", "file", "name"),
    [
        ("tap", "caches/judgments_factuality.jsonl", "tap-factuality"),
        ("tap", "runs/pilot/verdicts/clinical_utility.jsonl", "tap-clinical_utility"),
        ("verdicts", "runs/pilot/verdicts/utility.jsonl", "verdicts-utility"),
        ("plain", "utility.jsonl", "plain"),
    ],
)
def test_each_dimension_has_a_set_of_its_own(format_: str, file: str, name: str) -> None:
    """Rated together, battles on one prompt would pass for votes of several judges."""
    assert FORMATS[format_].set_of(Path(file)) == name


def test_each_order_is_a_battle_and_a_torn_line_is_told(tmp_path: Path) -> None:
    """Slot A won in both orders, so each entrant won once; a kill in mid-write tears a line."""
    *read, torn = sorted(
        read_text("tap", tmp_path / "judgments_factuality.jsonl", _CACHE),
        key=lambda row: isinstance(row, BadRow),
    )

    forward = ImportedBattle("base", "poe", "model_a", None, "srcA_00008", "llm-judge", "opus")
    assert read == [forward, forward._replace(model_a="poe", model_b="base")]
    assert isinstance(torn, BadRow)
    assert torn.line == 3


def test_of_two_judgments_with_one_key_the_later_counts() -> None:
    """Processes that ran side by side cached an order twice; tap reads the later, too."""
    read = battles_of_rows("tap", cached("k1", "A"), cached("k2", "TIE"), cached("k1", "B"))

    assert [row.winner for row in read] == ["model_b", "tie"]


@pytest.mark.parametrize("unknown", [{}, {"cache_key": None}, {"cache_key": ""}])
def test_judgments_without_a_key_all_count(unknown: dict[str, object]) -> None:
    """Nothing says that they are repetitions, even where each has the column and no key in it."""
    keyless = [
        {name: value for name, value in cached("", verdict).items() if name != "cache_key"}
        for verdict in "AB"
    ]

    read = battles_of_rows("tap", *(each | unknown for each in keyless))

    assert [row.winner for row in read] == ["model_a", "model_b"]


def test_a_damaged_repetition_takes_no_ones_place() -> None:
    """Else leaving it out would lose the sound judgment with it."""
    bad, sound = read_rows("tap", cached("k1", "A"), cached("k1", "?"))

    assert isinstance(bad, BadRow)
    assert isinstance(sound, ImportedBattle)
    assert sound.winner == "model_a"


@pytest.mark.parametrize(
    ("reply", "winner"),
    [
        ("Equal.\nVERDICT: TIE", "tie"),
        ("  verdict:tie, both are wrong\n", "tie"),
        ("**VERDICT: A**", "no verdict"),
        ("I would say VERDICT: TIE", "no verdict"),
        ("VERDICT:\nTIE", "no verdict"),
        ("cut off in the mid", "no verdict"),
        (None, "tie"),
    ],
)
def test_a_tie_that_the_reply_does_not_say_is_no_verdict(reply: str | None, winner: Winner) -> None:
    """A reply that tap could not read it called a tie, and cached as one."""
    (row,) = battles_of_rows("tap", cached(verdict="TIE") | {"reasoning": reply})

    assert row.winner == winner


@given(st.sampled_from(["A", "B", "TIE"]), st.sampled_from(["A", "B", "TIE"]))
def test_a_run_says_the_same_battles_as_its_cache(forward: str, swapped: str) -> None:
    """What it reconciled is not read, only what was judged."""
    orders = cached("k1", forward), cached("k2", swapped, position_swap=True)

    assert battles_of_rows("tap", as_run(*orders)) == battles_of_rows("tap", *orders)


@given(st.sampled_from([("A", "B"), ("B", "A"), ("TIE", "TIE")]))
def test_consistent_verdicts_are_mirrored_battles(verdicts: tuple[str, str]) -> None:
    """The same entrant won in both orders, or none did."""
    forward, swapped = verdicts
    first, second = battles_of_rows(
        "tap", cached("k1", forward), cached("k2", swapped, position_swap=True)
    )

    assert second == mirrored(first)


@pytest.mark.parametrize(
    ("judgment", "why"),
    [
        (cached(verdict="C"), "verdict is 'C', but must be one of A, B, TIE"),
        (cached(position_swap=None), "position_swap is None, but must be true or false"),
        (cached(prompt_id=""), "prompt_id is '', but must be a text"),
        (cached(entrant_b="base"), "'base' battles itself"),
        (cached() | {"metadata": None}, "metadata: must be an object, not null"),
        (dict(as_run(cached(), cached()), raw=[]), "raw: must have 2 entries, not 0"),
        (dict(as_run(cached(), cached()), raw=[{}, {}]), "pair: must be an object, not null"),
    ],
)
def test_a_row_that_is_no_judgment_is_told(judgment: Fields, why: str) -> None:
    """A missing position_swap, say, which tap itself takes for the forward order."""
    assert why_not("tap", judgment) == why
