"""manifest.json."""

import json

from msgspec.structs import replace

from ledger.chain import Head
from projections.artifacts.files import files_of, manifest
from tests.builders import NOON, entrant, known, opened
from tests.projections.worlds import cup, history, publication, results

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
