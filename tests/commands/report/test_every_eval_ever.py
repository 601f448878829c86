"""Records of Every Eval Ever: they fit its schema, of which a copy is beside the goldens."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from jsonschema import Draft7Validator

from commands.report.every_eval_ever import SCHEMA_VERSION, records_of
from ledger.events.registration import Entrant
from ledger.events.registry import Event
from tests.support.builders.events import entrant, judge, opened, prompt
from tests.support.builders.reports import HOSTILE, subject
from tests.support.builders.worlds import cup, history

SCHEMA = json.loads(Path("tests/golden/every-eval-ever/eval.schema.json").read_text())
NOW = datetime(2026, 11, 29, tzinfo=UTC)
_FILE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\.json")


def records(*events: Event) -> dict[str, Any]:
    """Return the records of a tournament, each of which fits the schema."""
    found = dict(records_of(subject(*events), NOW))
    for record in found.values():
        Draft7Validator(SCHEMA).validate(record)
    return found


def of(*entrants: Entrant) -> dict[str, Any]:
    """Return the records of entrants that met, judged by a model."""
    opening = opened(
        prompts=[prompt("p1"), prompt("p2")],
        entrants=entrants,
        judges=[judge("strict", provider="endpoint", model="large")],
    )
    return records(*history(opening, *"abab"))


def test_each_entrant_has_its_rating_with_its_interval() -> None:
    """The offline judge is no language model, so none is named; who is not rated has no record."""
    found = records(*history(cup(12), *("a", "b", "tie", "b") * 9))

    assert SCHEMA["version"] == SCHEMA_VERSION
    assert [each["model_info"]["name"] for each in found.values()] == ["zoe", "amy", "kim"]
    (result,) = next(iter(found.values()))["evaluation_results"]
    score = result["score_details"]
    interval = score["uncertainty"]["confidence_interval"]
    assert interval["lower"] < score["score"] < interval["upper"]
    assert "llm_scoring" not in result["metric_config"]
    assert records(*cup()) == {}


def test_a_model_is_called_by_its_name_on_the_hub_or_at_its_server() -> None:
    """So that the database finds all records of it; with an adapter it is another model."""
    named, served, tuned = (
        entrant("mine", weights="org/tiny", revision="abc"),
        entrant("theirs", loader="endpoint", weights="maker/large", dtype=None),
        entrant("tuned", adapters=[{"path": "lora", "digest": "0" * 64}], revision="abc"),
    )
    found = of(named, served, tuned)

    folders = [str(PurePosixPath(path).parent) for path in found]
    assert [folder.partition("/")[2].partition("/")[2] for folder in folders] == [
        "org/tiny",
        "maker/large",
        "unknown/tuned",
    ]
    (judged,) = {
        each["evaluation_results"][0]["metric_config"]["llm_scoring"]["judges"][0]["model_info"][
            "id"
        ]
        for each in found.values()
    }
    assert judged == "large"


@pytest.mark.parametrize("name", [*HOSTILE, "..", "a/../../b"])
def test_no_name_leads_out_of_the_folder(name: str) -> None:
    """A path has the parts that the database wants, whatever an entrant is called."""
    for path in of(entrant(name), entrant("b")):
        *parts, file = path.split("/")
        assert len(parts) == 4
        assert not {"", ".", ".."} & {*parts}
        assert _FILE.fullmatch(file)
