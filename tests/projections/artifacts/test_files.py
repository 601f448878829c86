"""The files of a run and their bytes: its records, and the manifest that names them."""

import io
import json
import zipfile
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from msgspec.structs import replace

from ledger.chain import Head
from ledger.events.judging import PairReconciled, VerdictReceived
from ledger.events.money import Usage
from ledger.events.registry import Event
from projections.artifacts.files import files_of, holds_ratings, holds_texts, line_files, manifest
from projections.artifacts.results import Results
from tests.support.builders.events import NOON, entrant, known, opened, prompt, responses
from tests.support.builders.worlds import RUBRICS, Fate, cup, history, matches_of, results

NAMES = {
    "manifest.json",
    "matches/matches.jsonl",
    "verdicts/factuality.jsonl",
    "verdicts/utility.jsonl",
    "elo_results.json",
    "elo_per_perm.npz",
    "pairwise_winrates.csv",
    "battles.jsonl",
    "elo_ratings.json",
}


def refuse(constant: str) -> NoReturn:
    """Refuse what Python reads and JSON does not know."""
    raise AssertionError(constant)


def texts_of(path: str, content: bytes) -> list[bytes]:
    """Return the JSON texts of a file: itself, its lines, or none."""
    match path.rpartition(".")[2]:
        case "json":
            return [content]
        case "jsonl":
            return content.splitlines()
        case _:
            return []


@pytest.mark.parametrize("fates", [(), ("a", "tie")])
def test_a_run_has_every_file_of_the_design(fates: tuple[Fate, ...]) -> None:
    """Scripts of the customer open these paths, with or without a verdict."""
    files = files_of(results(*history(opened(rubrics=RUBRICS), *fates)))

    assert set(files) == NAMES
    assert bool(files["battles.jsonl"]) == bool(fates)


def test_the_archive_of_traces_holds_no_date() -> None:
    """A zip file dates its entries, which would make a replay differ from one minute on."""
    content = files_of(results(*history(cup(), "a")))["elo_per_perm.npz"]

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        dates = {entry.date_time for entry in archive.infolist()}

    assert dates == {(1980, 1, 1, 0, 0, 0)}


@pytest.mark.parametrize("events", [cup(), history(cup(), "a"), history(cup(), "tie", "tie")])
def test_no_json_holds_a_number_that_json_does_not_know(events: tuple[Event, ...]) -> None:
    """NaN in a file stops every reader but Python, and hides that nothing was measured."""
    files = files_of(results(*events))

    values = [
        json.loads(text, parse_constant=refuse)
        for path, content in files.items()
        for text in texts_of(path, content)
    ]
    assert len(values) >= 3
    assert all(isinstance(value, dict) for value in values)


def test_the_manifest_says_what_was_run_by_what_and_how_it_ended() -> None:
    """Scripts read these by name; a run can be repeated from its folder, and compared with others.

    It ends with the last event that it read: a replay happens later and must say the same.
    """
    opening, *registered = cup()
    configuration = '{"judge":{"retries":1},"pilot":{"seed":20260427,"size":50}}'
    events = history((replace(opening, configuration=configuration), *registered), "a", "refused")
    found = results(*events)
    (rubric,) = found.tournament.dimensions
    newest = found.tournament.newest
    assert newest is not None
    terms = found.publication.terms
    account = {"planned": 6, "decided": 1, "tie": 0, "inconsistent": 0}

    fields = manifest(found)

    assert fields == {
        "run": "pilot_20260427_120000",
        "mode": "pilot",
        "config_path": None,
        "tournament": "main",
        "judge_model": "chrF2",
        "judge": found.judge.fields,
        "policy": "swap-consistent",
        "entrants": ["zoe", "amy", "kim"],
        "prompts": ["p1", "p2"],
        "bank_size": 2,
        "selected_prompt_count": 2,
        "n_perms": 4,
        "shuffle_seed": 7,
        "pilot_seed": 20260427,
        "elo": terms.elo.fields,
        "bradley_terry": terms.bradley_terry.fields,
        "instructions": fields["instructions"],
        "rubrics": {"factuality": {"version": "1", "digest": rubric.digest}},
        "accounts": {"factuality": {**account, "failed": {"refused": 1}, "pending": 4}},
        "configuration": json.loads(configuration),
        "versions": {"tourney": "0.1.0"},
        "started_at": NOON.isoformat(),
        "finished_at": newest.recorded_at.isoformat(),
        "as_of": newest.position,
        "head": found.publication.head,
        "checkpoint": str(Head(newest.position, found.publication.head)),
    }
    assert newest.position == len(events)
    assert manifest(results(*cup()))["pilot_seed"] is None


def test_names_are_written_as_people_write_them() -> None:
    """A manifest is read by eye; escapes would make accents unreadable."""
    events = history(opened(entrants=[entrant("élan"), entrant("base")]))

    files = files_of(results(*events))

    for path in ("manifest.json", "matches/matches.jsonl"):
        assert '"élan"'.encode() in files[path]
        assert files[path].endswith(b"}\n")


def matches(found: Results) -> list[dict[str, object]]:
    """Return the matches."""
    return [*map(json.loads, line_files(found.pairs)["matches/matches.jsonl"])]


def judged(found: Results) -> list[dict[str, object]]:
    """Return the verdicts of the first dimension."""
    (dimension, *_) = found.settlements
    return [*map(json.loads, line_files(found.pairs)[f"verdicts/{dimension}.jsonl"])]


def test_a_match_has_the_fields_of_the_customers() -> None:
    """The pair as it was judged, with both responses whole and what the judge could know."""
    tagged = prompt(expected_behavior="hedge", source="curated")

    (row,) = matches(results(*history(opened(prompts=[tagged]))))

    assert row == {
        "dimension": "factuality",
        "prompt_id": "p1",
        "source": "curated",
        "prompt_text": "Question p1?",
        "entrant_a": "base",
        "entrant_b": "tuned",
        "response_a": "base on p1",
        "response_b": "tuned on p1",
        "gold_answer": "aspirin",
        "expected_behavior": "hedge",
    }


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        pytest.param(None, (None, None, None, None), id="what no judge counted was not free"),
        pytest.param(Usage(5, 7, 11, 13, 17), (5, 7, 24, 17), id="two caches are written as one"),
    ],
)
def test_a_judgment_has_the_fields_of_the_customers(
    usage: Usage | None, tokens: tuple[int | None, ...]
) -> None:
    """Who doubts an outcome reads what the judge said, forward first, with the whole pair."""
    counted = [
        structs.replace(event, usage=usage) if isinstance(event, VerdictReceived) else event
        for event in history(opened(), "b")
    ]
    found = results(*counted)
    (match,), (pair,) = matches_of(found.tournament), matches(found)
    del pair["dimension"]
    counts = ("input_tokens", "output_tokens", "cache_creation_input_tokens")

    (row,) = judged(found)

    same = {
        "pair": pair,
        "rubric_version": "1",
        "judge_model": "chrF2",
        "parser": "final-line@1",
        "stop_reason": "end_turn",
        **dict(zip((*counts, "cache_read_input_tokens"), tokens, strict=True)),
    }
    assert row == {
        "prompt_id": "p1",
        "dimension": "factuality",
        "entrant_a": "base",
        "entrant_b": "tuned",
        "winner": "tuned",
        "inconsistent": False,
        "outcome": "b",
        "raw": [
            {
                "cache_key": key,
                "position_swap": is_swapped,
                "verdict": said,
                "reasoning": f"VERDICT: {said}",
                "timestamp": f"2026-04-27T12:00:{second:02}+00:00",
                **same,
            }
            for key, is_swapped, said, second in (
                (match.forward_key, False, "B", 8),
                (match.swapped_key, True, "A", 9),
            )
        ],
    }


@given(text=st.text(min_size=1), gold=st.none() | st.text())
def test_lines_are_as_pythons_json_writes_them(text: str, gold: str | None) -> None:
    """A run that was published by Python's encoder must stay byte for byte the same."""
    task = prompt(text=text, gold=gold)
    found = results(*history(opened(prompts=[task], rubrics=[RUBRICS[1]]), "b"))

    files = files_of(found)

    for path in ("matches/matches.jsonl", "verdicts/utility.jsonl", "battles.jsonl"):
        (line,) = files[path].splitlines(keepends=True)
        assert line == f"{json.dumps(json.loads(line), ensure_ascii=False)}\n".encode()


def test_only_reconciled_pairs_are_among_the_verdicts() -> None:
    """A failure has no verdict to show, and must not be shown as a tie."""
    found = results(*history(cup(), "a", "tie", "inconsistent", "refused", "pending"))

    rows = [(row["winner"], row["inconsistent"], row["outcome"]) for row in judged(found)]

    assert rows == [("zoe", False, "a"), (None, False, "tie"), (None, True, "inconsistent")]


def test_battles_have_the_mean_of_both_verdicts() -> None:
    """JudgeArena rates by preferences; opposite winners are half a win for each."""
    found = results(*history(cup(), "a", "b", "tie", "inconsistent", "refused", "pending"))

    rows = [*map(json.loads, line_files(found.pairs)["battles.jsonl"])]

    assert [(row["model_a"], row["model_b"], row["winner"]) for row in rows] == [
        ("zoe", "amy", "model_a"),
        ("zoe", "kim", "model_b"),
        ("amy", "kim", "tie"),
        ("zoe", "amy", "tie"),
    ]
    assert rows[0] == {
        "model_a": "zoe",
        "model_b": "amy",
        "winner": "model_a",
        "pref": 0.0,
        "source": "llm-judge",
        "question_id": "p1",
        "judge_model": "chrF2",
        "dimension": "factuality",
    }


def test_identical_responses_that_tied_unasked_have_no_replies() -> None:
    """A row without replies says why it has none."""
    answered = (
        *opened(),
        *responses(known(*opened()), {("base", "p1"): "x", ("tuned", "p1"): "x"}),
    )
    tournament = known(*answered)
    (match,) = matches_of(tournament)
    key = match.key(tournament.panel[0].judge_id)
    tied = PairReconciled(outcome="tie", basis="identical", **key._asdict())

    (row,) = judged(results(*answered, tied))

    assert (row["outcome"], row["raw"], row["basis"]) == ("tie", [], "identical")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("manifest.json", True),
        ("matches/calibration.jsonl", True),
        ("verdicts/calibration.jsonl", True),
        ("elo_results.json", False),
        ("win_rate_results.json", False),
    ],
)
def test_only_files_with_texts_change_when_one_is_redacted(path: str, expected: bool) -> None:
    """A rating that changed is a fault all the same."""
    assert holds_texts(path) is expected


def test_only_files_of_elo_ratings_depend_on_the_arithmetic() -> None:
    """Bounds of Bradley-Terry ratings stand in a file beside Elo's, and depend on it, too."""
    files = ("elo_results.json", "elo_per_perm.npz", "elo_ratings.json", "win_rate_results.json")

    assert [holds_ratings(path) for path in files] == [True, True, True, False]
