"""Events become bytes and events again: those of today, and those kept for ever."""

from operator import attrgetter
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from numpy import float64

from ledger.errors import InvalidEvent
from ledger.events.evaluations import Observation, SampleObserved
from ledger.events.judging import VerdictReceived
from ledger.events.ratings import (
    BradleyTerryParameters,
    EloParameters,
    Publication,
    PublicationTerms,
    RatingsPublished,
)
from ledger.events.registration import (
    EntrantRegistered,
    PromptRegistered,
    Reference,
    TournamentOpened,
)
from ledger.events.registry import EVENTS, Event
from ledger.events.responses import Diagnostics, ResponseGenerated
from ledger.events.values import type_name
from ledger.identity import Digest, JudgeId, StreamId
from ledger.store import Ledger
from tests.support.builders.events import (
    NOON,
    entrant,
    hydra,
    key,
    opened,
    prompt,
    verdict,
    verdicts,
)
from tests.support.goldens.events import GOLDENS, SAMPLES, STORED, kind_of, read
from tests.support.strategies.events import BY_TYPE


@pytest.mark.parametrize("name", EVENTS.types)
@given(data=st.data())
def test_an_event_of_any_content_survives_being_stored(name: str, data: st.DataObject) -> None:
    """What is folded years later is what happened, to the last digit of a float."""
    event = data.draw(BY_TYPE[name])

    stored = EVENTS.encode(event)
    restored = EVENTS.decode(name, event.schema_version, stored)

    assert restored == event
    assert EVENTS.encode(restored) == stored


@pytest.mark.parametrize(
    ("stored", "complaint"),
    [
        (b"", "truncated"),
        (b"[]", "Expected `object`, got `array`"),
        (b"{}", "missing required field `query_key`"),
        (b'{"verdict":"C"}', r"Invalid enum value 'C' - at `\$.verdict`"),
        (b'{"confidence":1}', "unknown field `confidence`"),
    ],
)
def test_bytes_of_a_wrong_shape_are_refused(stored: bytes, complaint: str) -> None:
    """There is no default that could pass for what a judge said."""
    with pytest.raises(ValueError, match=complaint):
        EVENTS.decode("VerdictReceived", VerdictReceived.schema_version, stored)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "null"])
def test_a_number_that_is_not_finite_is_not_read(number: str) -> None:
    """NaN in a payload would be unequal to itself and refuse every retry."""
    stored = b'{"diagnostics":{"entropies":[%s]}}' % number.encode()

    with pytest.raises(ValueError, match=r"malformed|out of range|Expected `float`, got `null`"):
        EVENTS.decode("ResponseGenerated", ResponseGenerated.schema_version, stored)


NAN, INFINITE = float("nan"), float("inf")
SURROGATE = "half a pair: \ud800"
DECIDED = Diagnostics(draft_head_idx=0, bypass_jury=False)
OPENING = opened()[0]
assert isinstance(OPENING, TournamentOpened)


def published(as_of: int = 1, **elo: object) -> RatingsPublished:
    """Return a publication of ratings under these parameters, which are not checked."""
    parameters = replace(EloParameters(), **elo)
    terms = PublicationTerms(
        "pilot", JudgeId("reference"), "agreement@1", parameters, (), (), BradleyTerryParameters()
    )
    return RatingsPublished(Publication("run", terms, NOON, as_of, key("head")), ())


def response(**fields: object) -> Event:
    """Return a response with these fields, which are not checked."""
    return replace(SAMPLES["ResponseGenerated.v1.json"], **fields)


def registered(**fields: object) -> EntrantRegistered:
    """Return an entrant's registration with these fields, which are not checked."""
    return EntrantRegistered(digest=key("entrant"), entrant=replace(entrant(), **fields))


INVALID: dict[str, tuple[Event, str]] = {
    "NaN": (response(elapsed_s=NAN), "elapsed_s"),
    "NaN inside": (published(initial_rating=NAN), "initial_rating"),
    "NaN in a list": (published(k_sweep=(1.0, NAN)), "k_sweep"),
    "negative time": (response(elapsed_s=-0.5), "elapsed_s"),
    "seed of 33 bits": (response(seed=2**32), "seed"),
    "unknown loader": (registered(loader="vllm"), "vllm"),
    "head without a layer": (registered(hydra=replace(hydra(), heads_depth=0)), "heads_depth"),
    "more than certain": (response(p_correct=1.5), "p_correct"),
    "NaN of a token": (response(diagnostics=replace(DECIDED, entropies=(NAN,))), "entropies"),
    "K zero": (published(k=0.0), "elo.k"),
    "K of a billion": (published(k=1e9), "elo.k"),
    "publication of nothing": (published(0), "as_of"),
    "empty prompt": (
        PromptRegistered(digest=key("prompt"), prompt=replace(prompt(), text="")),
        "prompt.text",
    ),
    "unknown verdict": (replace(verdict(key("q")), verdict="C"), "'C'"),
    "a number for a reason": (response(finish_reason=7), "int"),
    "truth for a count": (response(sample=True), "bool"),
    "nothing for a text": (response(text=None), "null"),
    "bytes for a text": (response(text=b"AAAA"), "read back as"),
    "list for a tuple": (replace(OPENING, entrants=[Reference("a", key("a"))]), "read back as"),
    "half a surrogate pair": (response(text=SURROGATE), "surrogates not allowed"),
    "half a surrogate pair in a key": (
        response(response_key=Digest(SURROGATE)),
        "surrogates not allowed",
    ),
    "a number of numpy's": (response(elapsed_s=float64(0.5)), "numpy"),
    "something that JSON has no word for": (response(text=object()), "object"),
    "something else in a key": (response(response_key=object()), "object"),
}


@pytest.mark.parametrize(("event", "why"), INVALID.values(), ids=INVALID)
def test_an_event_that_is_not_what_its_type_says_is_not_stored(event: Event, why: str) -> None:
    """Nobody could read it again: not the run that resumes, nor the replay in a year."""
    with pytest.raises(InvalidEvent) as caught:
        EVENTS.encode(event)

    assert caught.value.type == type_name(event)
    assert why in caught.value.why
    assert str(caught.value).startswith(f"{type_name(event)} was not recorded: ")


def test_a_stream_whose_name_is_no_text_is_refused(ledger: Ledger) -> None:
    """No reader could ask for it again."""
    with pytest.raises(InvalidEvent, match="surrogates not allowed"):
        ledger.append(StreamId(SURROGATE), verdicts(1))

    assert ledger.head.position == 0


def test_a_whole_number_for_a_fraction_is_stored_as_a_fraction() -> None:
    """One value has one spelling, whoever made the event: ledgers keep `16.0` for K."""
    given = EVENTS.encode(published(k=16))

    assert given == EVENTS.encode(published(k=16.0))


@pytest.mark.no_cover
@pytest.mark.parametrize("path", STORED, ids=attrgetter("name"))
def test_a_stored_event_is_read_and_written_back_unchanged(path: Path) -> None:
    """A field renamed or reordered would make old ledgers unreadable, or refuse a retry.

    Of an older version, what is written back says the same in today's words.
    """
    event = read(path)
    written = EVENTS.encode(event)

    if path.name in SAMPLES:
        assert (written, event.schema_version) == (path.read_bytes(), kind_of(path)[1])
    else:
        assert EVENTS.decode(kind_of(path)[0], event.schema_version, written) == event


def test_every_version_of_every_event_has_a_golden() -> None:
    """It is pinned from its first day, and kept for ever: see tests/support/goldens/events.py."""
    assert {*map(kind_of, STORED)} == EVENTS.decoders.keys()


def test_every_shape_of_an_observation_has_a_golden() -> None:
    """One type of event holds them all, so a golden of the type pins one of them only."""
    observed = [each.observation for each in SAMPLES.values() if isinstance(each, SampleObserved)]

    assert {type(each) for each in observed} == set(get_args(Observation))


def test_a_publication_of_an_earlier_version_rates_as_all_did_then() -> None:
    """Outcomes, by the earlier arithmetic: a replay must give the files that were published."""
    published = [read(GOLDENS / f"RatingsPublished.v{version}.json") for version in (1, 2, 3)]
    terms = [each.publication.terms for each in published if isinstance(each, RatingsPublished)]

    assert [each.rated_by for each in terms] == ["outcomes", "verdicts", "verdicts"]
    assert [each.arithmetic for each in terms] == [1, 1, 2]
