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
from ledger.events.ratings import RatingsPublished
from ledger.events.registry import Event
from projections.artifacts.files import files_of, holds_ratings, holds_texts, manifest
from projections.artifacts.lines import PairLines
from projections.artifacts.results import Results, results_of
from projections.fold import fold
from projections.tournament.folding import tournament_of
from projections.verdicts.policies import DEFAULT_POLICY
from tests.support.builders.events import (
    NOON,
    STREAM,
    entrant,
    known,
    opened,
    prompt,
    recorded,
    responses,
)
from tests.support.builders.worlds import RUBRICS, cup, history, matches_of, publication, results

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
UNREADABLE_LINES = "one\ntwo\r\nthree\u2028four\u0085five\x00"


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


def test_a_run_has_every_file_of_the_design() -> None:
    """Scripts of the customer open these paths."""
    files = files_of(results(*history(opened(rubrics=RUBRICS), "a", "tie")))

    assert set(files) == NAMES


def test_a_run_without_a_verdict_has_every_file_too() -> None:
    """A script must not have to guess which files are there."""
    files = files_of(results(*opened(rubrics=RUBRICS)))

    assert set(files) == NAMES
    assert files["battles.jsonl"] == files["matches/matches.jsonl"] == b""


def test_the_archive_of_traces_holds_no_date() -> None:
    """A zip file dates its entries, which would make a replay differ from one minute on."""
    content = files_of(results(*history(cup(), "a")))["elo_per_perm.npz"]

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        dates = {entry.date_time for entry in archive.infolist()}

    assert dates == {(1980, 1, 1, 0, 0, 0)}


@pytest.mark.parametrize("at", [0, 3, 9, 15])
def test_a_state_folded_in_two_steps_gives_the_same_bytes(at: int) -> None:
    """A run publishes from the state in hand, and a replay folds from the first event."""
    events = recorded(history(cup(), "a", "b", "tie", "inconsistent", "refused"))
    tournament = tournament_of(STREAM)
    whole = fold(tournament, events)

    stepwise = fold(tournament, events[at:], start=fold(tournament, events[:at]))

    claim = publication(whole)
    assert files_of(results_of(stepwise, claim)) == files_of(results_of(whole, claim))


def test_publishing_changes_no_byte_of_what_was_published() -> None:
    """A claim is appended after the events that it is about, and read again with them."""
    events = history(cup(), "a", "b")
    before = known(*events)
    claim = publication(before)

    after = known(*events, RatingsPublished(publication=claim, artifacts=()))

    assert files_of(results_of(after, claim)) == files_of(results_of(before, claim))


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


def test_a_record_is_one_line_whatever_it_says() -> None:
    """A response with line breaks must not tear its record in two."""
    opening = opened(prompts=[prompt(text=UNREADABLE_LINES)])
    texts = {("base", "p1"): UNREADABLE_LINES, ("tuned", "p1"): "plain"}
    said = responses(known(*opening), texts)

    content = files_of(results(*opening, *said))["matches/matches.jsonl"].decode()

    (line, end) = content.split("\n")
    assert (json.loads(line)["response_a"], end) == (UNREADABLE_LINES, "")
    assert json.loads(line)["prompt_text"] == UNREADABLE_LINES


CUSTOMERS = {
    "mode",
    "config_path",
    "judge_model",
    "entrants",
    "bank_size",
    "selected_prompt_count",
    "n_perms",
    "shuffle_seed",
    "pilot_seed",
    "started_at",
    "finished_at",
}


def test_the_manifest_has_every_field_of_the_customers() -> None:
    """Scripts read these by name, and a missing one stops them."""
    fields = manifest(results(*history(cup(), "a")))

    assert set(fields) >= CUSTOMERS
    assert {name: fields[name] for name in CUSTOMERS - {"started_at", "finished_at"}} == {
        "mode": "pilot",
        "config_path": None,
        "judge_model": "chrF2",
        "entrants": ["zoe", "amy", "kim"],
        "bank_size": 2,
        "selected_prompt_count": 2,
        "n_perms": 4,
        "shuffle_seed": 7,
        "pilot_seed": None,
    }


def test_the_manifest_repeats_the_configuration_whole() -> None:
    """A run can be repeated from its folder alone."""
    opening, *registered = cup()
    configuration = '{"judge":{"retries":1},"pilot":{"seed":20260427,"size":50}}'
    configured = replace(opening, configuration=configuration)

    fields = manifest(results(configured, *registered))

    assert fields["configuration"] == json.loads(configuration)
    assert fields["pilot_seed"] == 20260427
    assert fields["versions"] == {"tourney": "0.1.0"}


def test_a_run_ends_with_the_last_event_that_it_read() -> None:
    """The time of a fold is nobody's business: a replay happens later and must say the same."""
    events = history(cup(), "a")
    tournament = known(*events)

    fields = manifest(results(*events))

    assert tournament.newest is not None
    assert fields["started_at"] == NOON.isoformat()
    assert fields["finished_at"] == tournament.newest.recorded_at.isoformat()
    assert fields["as_of"] == tournament.newest.position == len(events)
    assert fields["head"] == publication(tournament).head


def test_the_manifest_holds_a_checkpoint_of_what_it_rates() -> None:
    """A run that was handed on proves later that its ledger is still the same."""
    fields = manifest(results(*history(cup(), "a")))

    head = Head.parse(str(fields["checkpoint"]))
    assert (head.position, head.chain) == (fields["as_of"], fields["head"])


def test_the_manifest_accounts_for_every_pairing() -> None:
    """A run with gaps says so in the first file that anybody opens."""
    fields = manifest(results(*history(cup(), "a", "tie", "refused")))

    assert fields["accounts"] == {
        "factuality": {
            "planned": 6,
            "decided": 1,
            "tie": 1,
            "inconsistent": 0,
            "failed": {"refused": 1},
            "pending": 3,
        }
    }


def test_the_manifest_names_what_was_judged_by_and_how() -> None:
    """Two runs can be compared only if judge, rubric, policy and Elo's parameters agree."""
    found = results(*history(cup(), "a"))
    (rubric,) = found.tournament.dimensions

    fields = manifest(found)

    assert fields["rubrics"] == {"factuality": {"version": "1", "digest": rubric.digest}}
    assert fields["judge"] == found.judge.fields
    assert fields["elo"] == found.publication.terms.elo.fields
    assert fields["bradley_terry"] == found.publication.terms.bradley_terry.fields
    assert (fields["policy"], fields["tournament"]) == ("swap-consistent", "main")
    assert (fields["run"], fields["prompts"]) == ("pilot_20260427_120000", ["p1", "p2"])


def test_names_are_written_as_people_write_them() -> None:
    """A manifest is read by eye; escapes would make accents unreadable."""
    events = history(opened(entrants=[entrant("élan"), entrant("base")]))

    files = files_of(results(*events))

    for path in ("manifest.json", "matches/matches.jsonl"):
        assert '"élan"'.encode() in files[path]
        assert files[path].endswith(b"}\n")


PAIR = {
    "prompt_id",
    "source",
    "prompt_text",
    "entrant_a",
    "entrant_b",
    "response_a",
    "response_b",
    "gold_answer",
    "expected_behavior",
}
JUDGMENT = {
    "cache_key",
    "pair",
    "rubric_version",
    "judge_model",
    "position_swap",
    "verdict",
    "reasoning",
    "timestamp",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "input_tokens",
    "output_tokens",
}


def matches(found: Results) -> list[dict[str, object]]:
    """Return the matches."""
    return [json.loads(b"".join(line)) for line in PairLines(found.pairs).matches()]


def judged(found: Results) -> list[dict[str, object]]:
    """Return the verdicts of the first dimension."""
    (dimension, *_) = found.settlements
    return [json.loads(b"".join(line)) for line in PairLines(found.pairs).verdicts(dimension)]


def test_matches_are_in_the_order_of_the_match_list() -> None:
    """Prompts, then dimensions, then pairs: line n of the customer's file is line n here."""
    prompts = [prompt("p2"), prompt("p1", gold=None), prompt("p3")]

    rows = matches(results(*history(opened(rubrics=RUBRICS, prompts=prompts))))

    assert [(row["prompt_id"], row["dimension"]) for row in rows] == [
        ("p2", "factuality"),
        ("p2", "utility"),
        ("p1", "utility"),
        ("p3", "factuality"),
        ("p3", "utility"),
    ]


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


def test_a_pairing_without_a_response_is_no_match() -> None:
    """The file holds what could be judged; the account counts the rest."""
    *said, _ = responses(known(*cup()))  # kim's second is missing

    rows = matches(results(*cup(), *said))

    assert [row["prompt_id"] for row in rows] == ["p1", "p1", "p1", "p2"]


def test_a_judgment_has_the_fields_of_the_customers() -> None:
    """Scripts that read the customer's verdicts read these as well."""
    (row,) = judged(results(*history(opened(), "b")))

    raw = row.pop("raw")
    assert row == {
        "prompt_id": "p1",
        "dimension": "factuality",
        "entrant_a": "base",
        "entrant_b": "tuned",
        "winner": "tuned",
        "inconsistent": False,
        "outcome": "b",
    }
    assert isinstance(raw, list)
    assert all(set(each) >= JUDGMENT and set(each["pair"]) == PAIR for each in raw)


@given(text=st.text(min_size=1), gold=st.none() | st.text())
def test_lines_are_as_pythons_json_writes_them(text: str, gold: str | None) -> None:
    """A run that was published by Python's encoder must stay byte for byte the same."""
    task = prompt(text=text, gold=gold)
    found = results(*history(opened(prompts=[task], rubrics=[RUBRICS[1]]), "b"))

    files = files_of(found)

    for path in ("matches/matches.jsonl", "verdicts/utility.jsonl", "battles.jsonl"):
        (line,) = files[path].splitlines(keepends=True)
        assert line == f"{json.dumps(json.loads(line), ensure_ascii=False)}\n".encode()


def test_both_replies_are_kept_whole_and_in_order() -> None:
    """Who doubts an outcome reads what the judge said, forward first."""
    (row,) = judged(results(*history(opened(), "a")))

    raw = row["raw"]
    assert isinstance(raw, list)
    assert [
        (each["position_swap"], each["verdict"], each["reasoning"], each["parser"]) for each in raw
    ] == [(False, "A", "VERDICT: A", "final-line@1"), (True, "B", "VERDICT: B", "final-line@1")]
    assert raw[0]["pair"] == raw[1]["pair"]
    assert raw[0]["cache_key"] != raw[1]["cache_key"]


def test_what_no_judge_counted_is_null() -> None:
    """Zero tokens would claim that a query was free."""
    (row,) = judged(results(*history(opened(), "a")))

    raw = row["raw"]
    assert isinstance(raw, list)
    assert {each["input_tokens"] for each in raw} == {None}
    assert {(each["stop_reason"], each["timestamp"][:10]) for each in raw} == {
        ("end_turn", "2026-04-27")
    }


def test_only_reconciled_pairs_are_among_the_verdicts() -> None:
    """A failure has no verdict to show, and must not be shown as a tie."""
    found = results(*history(cup(), "a", "tie", "inconsistent", "refused", "pending"))

    rows = [(row["winner"], row["inconsistent"], row["outcome"]) for row in judged(found)]

    assert rows == [
        ("zoe", False, "a"),
        (None, False, "tie"),
        (None, True, "inconsistent"),
    ]


def test_battles_have_the_mean_of_both_verdicts() -> None:
    """JudgeArena rates by preferences; opposite winners are half a win for each."""
    found = results(*history(cup(), "a", "b", "tie", "inconsistent", "refused", "pending"))

    rows = [json.loads(b"".join(line)) for line in PairLines(found.pairs).battles()]

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


def test_the_tokens_of_a_reply_are_in_the_customers_fields() -> None:
    """What was written to a cache for five minutes or an hour is one number there."""
    usage = Usage(n_input=5, n_output=7, n_cache_write_5m=11, n_cache_write_1h=13, n_cache_read=17)
    counted = [
        structs.replace(event, usage=usage) if isinstance(event, VerdictReceived) else event
        for event in history(opened(), "a")
    ]

    (row,) = judged(results(*counted))

    raw = row["raw"]
    assert isinstance(raw, list)
    assert {
        (
            each["input_tokens"],
            each["output_tokens"],
            each["cache_creation_input_tokens"],
            each["cache_read_input_tokens"],
        )
        for each in raw
    } == {(5, 7, 24, 17)}


def test_identical_responses_that_tied_unasked_have_no_replies() -> None:
    """A row without replies says why it has none."""
    answered = (
        *opened(),
        *responses(known(*opened()), {("base", "p1"): "x", ("tuned", "p1"): "x"}),
    )
    tournament = known(*answered)
    (match,) = matches_of(tournament)
    key = match.key(tournament.panel[0].judge_id, DEFAULT_POLICY)
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
