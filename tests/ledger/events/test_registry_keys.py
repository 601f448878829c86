"""What names an event, a query, a response, a run, an item and a batch: pinned for ever.

A resumed run finds by these names what an older tourney recorded; named otherwise, all of it would
be asked for, and paid for, again.
"""

import json
from pathlib import Path

from ledger.events.evaluations import item_digest, run_key, scoring_digest
from ledger.events.judging import batch_key, part_key, query_key, repeat_key
from ledger.events.responses import response_key
from ledger.identity import Dimension, digest_of, digest_of_bytes
from tests.support.builders.events import STREAM, key
from tests.support.goldens.events import STORED, read

TWO = (key("one"), key("two"))
KEYS = Path(__file__).parents[2] / "golden" / "event_keys.json"


def test_each_event_is_known_by_the_key_that_it_always_had() -> None:
    """The same fact told again is found by it; a new golden adds its key to the file."""
    pinned = json.loads(KEYS.read_text(encoding="utf-8"))

    assert {path.name: [*read(path).natural_key] for path in STORED} == pinned


def test_a_name_is_the_digest_of_all_that_determines_what_it_names() -> None:
    """Too coarse, it would take one question's answer for another's."""
    texts = f"{key('judge')}{key('Compare.')}A: yes\nB: no"
    assert query_key(key("judge"), key("Compare."), "A: yes\nB: no") == digest_of_bytes(
        texts.encode()
    )
    assert repeat_key(key("query")) == digest_of(["repeat", key("query")])
    of_part = digest_of(["part", key("request"), "d"])
    assert part_key(key("request"), Dimension("d")) == of_part
    of_response = digest_of([key("entrant"), "Why?", 7, 1])
    assert response_key(key("entrant"), "Why?", seed=7, sample=1) == of_response
    assert run_key(key("entrant"), "{}") == digest_of([key("entrant"), "{}"])
    of_scoring = digest_of([key("judge"), key("rubric")])
    assert scoring_digest(key("judge"), key("rubric")) == of_scoring
    assert item_digest(["What?", "That"], 1) == digest_of(["What?", "That"])
    assert item_digest(["What?", "That"], 2) == digest_of([["What?", "That"], 2])
    assert batch_key(STREAM, 3, TWO) == digest_of(["main", 3, [*TWO]])
