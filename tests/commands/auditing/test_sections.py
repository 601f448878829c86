"""A run that is checked in sections has the files of the run that is made whole."""

from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from commands.auditing.sections import KeyPlaces, SectionedTournament
from ledger.events.judging import Verdict
from ledger.events.ratings import Publication, RatedBy
from ledger.events.registration import Registered, TournamentOpened
from ledger.events.registry import Event
from ledger.events.responses import ResponseGenerated
from ledger.identity import Digest, PromptId, StreamId, digest_of_bytes
from ledger.recorded import Recorded
from ledger.store import Ledger
from projections.artifacts.files import files_of
from projections.artifacts.results import results_of
from projections.fold import fold
from projections.tournament.folding import tournament_of
from projections.tournament.state import Tournament
from projections.verdicts.queries import PairQuery
from tests.support.builders.events import (
    STREAM,
    entrant,
    key,
    known,
    opened,
    prompt,
    recorded,
)
from tests.support.builders.worlds import (
    COUNTERBALANCED,
    RUBRICS,
    Fate,
    answered,
    cup,
    history,
    judged,
    publication,
    with_judging,
)
from tests.support.strategies.tournaments import tournament_histories

OTHER = StreamId("other")


def gone_through(ledger: Ledger, *, prompts_at_once: int = 1) -> SectionedTournament:
    """Go through a ledger two events at a time."""
    places = KeyPlaces()
    tournament = SectionedTournament(STREAM, ledger.at, places, prompts_at_once=prompts_at_once)
    events = [*ledger.read()]
    for start in range(0, len(events), 2):
        places.note(events[start : start + 2])
        tournament.advance(events[start : start + 2])
    return tournament


def whole(ledger: Ledger) -> Tournament:
    """Return the state after all events."""
    return fold(tournament_of(STREAM), ledger.read())


def digests(state: Tournament, claim: Publication) -> dict[str, Digest]:
    """Return the digests of a run's files, made whole."""
    files = files_of(results_of(state, claim))
    return {path: digest_of_bytes(content) for path, content in files.items()}


@given(events=tournament_histories(), prompts_at_once=st.integers(1, 3), data=st.data())
def test_sections_together_are_the_run(
    events: list[Event], prompts_at_once: int, data: st.DataObject
) -> None:
    """Whichever tournament recorded what."""
    kinds = st.sampled_from([(STREAM,), (STREAM,), (OTHER,), (OTHER, STREAM), (STREAM, OTHER)])
    with Ledger.in_memory() as ledger:
        for event in events:
            is_setting = isinstance(event, TournamentOpened | Registered)
            for stream in (STREAM, OTHER) if is_setting else data.draw(kinds):
                ledger.append(stream, [event])
        claim = publication(whole(ledger))

        found = gone_through(ledger, prompts_at_once=prompts_at_once).digests(claim)

        assert found == digests(whole(ledger), claim)


@pytest.mark.parametrize("rated_by", ["verdicts", "outcomes"])
@pytest.mark.parametrize("chosen", [slice(None), slice(1, None)])
def test_prompts_of_one_text_are_one_across_sections(
    ledger: Ledger, rated_by: RatedBy, chosen: slice
) -> None:
    """Two sections hold the text of a third prompt, which the run may leave out."""
    texts = ["Why?", "How?", "Why?", "When?", "Why?", "Where?", "Whence?", "Who?"]
    prompts = [prompt(f"p{n}", text=text) for n, text in enumerate(texts)]
    entrants = [entrant(name, temperature=0.7) for name in ("zoe", "amy", "kim")]
    fates: list[Fate] = ["a", "inconsistent", "b", "a", "tie"]
    ledger.append(STREAM, history(opened(prompts=prompts, entrants=entrants), *fates * 5))
    claim = publication(whole(ledger))
    terms = replace(claim.terms, rated_by=rated_by, prompts=claim.terms.prompts[chosen])
    run = replace(claim, terms=terms)

    found = gone_through(ledger).digests(run)

    assert found == digests(whole(ledger), run)


@pytest.mark.parametrize(
    ("judging", "n_samples"),
    [
        ("{}", 2),
        ('{"sparse": 2}', 1),
        (COUNTERBALANCED, 2),
        pytest.param("{}", 1, marks=pytest.mark.nightly),
        pytest.param('{"sparse": 2}', 2, marks=pytest.mark.nightly),
        pytest.param(COUNTERBALANCED, 1, marks=pytest.mark.nightly),
    ],
)
def test_sections_draw_the_pairs_and_orders_of_the_whole_bank(
    ledger: Ledger, judging: str, n_samples: int
) -> None:
    """What the slot gave is one number for all sections, too."""
    prompts = [
        prompt(f"p{n}#{sample}", text=f"T {n}")
        for sample in range(n_samples)
        for n in range(12 // n_samples)
    ]
    entrants = [entrant(name, temperature=0.7) for name in ("zoe", "amy", "kim", "bob")]
    events = with_judging(opened(prompts=prompts, entrants=entrants), judging)

    verdicts: list[Verdict] = ["A", "A", "A", "B", "B", "TIE"]

    def verdict_on(asked: PairQuery) -> Verdict:
        return verdicts[int(asked.query_key[:8], 16) % len(verdicts)]

    ledger.append(STREAM, judged(answered(events), verdict_on))
    claim = publication(whole(ledger))

    found = gone_through(ledger, prompts_at_once=5).digests(claim)

    assert found == digests(whole(ledger), claim)


@pytest.mark.parametrize("kind", ["ResponseGenerated", "VerdictReceived", "JudgeQueryFailed"])
def test_what_was_redacted_is_missing_in_its_section(ledger: Ledger, kind: str) -> None:
    """The outcome of a pair without a response stays, by its name."""
    ledger.append(STREAM, history(cup(), "a", "refused", "b", "tie"))
    at = next(each.position for each in ledger.rows() if each.type == kind)
    ledger.redact(at, "a key")
    claim = publication(whole(ledger))

    assert gone_through(ledger).digests(claim) == digests(whole(ledger), claim)


def test_a_run_of_no_prompt_has_its_files(ledger: Ledger) -> None:
    """Nothing was judged yet."""
    ledger.append(STREAM, opened(prompts=[], rubrics=RUBRICS))
    claim = publication(whole(ledger))

    assert gone_through(ledger).digests(claim) == digests(whole(ledger), claim)


def test_terms_that_name_what_is_not_there_are_an_error(ledger: Ledger) -> None:
    """The run cannot be made, and so differs."""
    claim = publication(known(*cup()))

    with pytest.raises(LookupError):
        gone_through(ledger).digests(claim)


def test_a_section_reads_its_own_events_alone(ledger: Ledger) -> None:
    """All texts together are larger than memory."""
    prompts = [prompt(f"p{n}") for n in range(5)]
    ledger.append(STREAM, history(opened(prompts=prompts), "a", "a", "a", "a", "a"))
    read = list[set[str]]()

    def reading(positions: Iterable[int]) -> Iterator[Recorded]:
        events = [*ledger.at(positions)]
        read.append({e.event.prompt_id for e in events if isinstance(e.event, ResponseGenerated)})
        yield from events

    places = KeyPlaces()
    places.note(ledger.read())
    tournament = SectionedTournament(STREAM, reading, places)
    tournament.advance([*ledger.read()])
    for n in range(5):
        tournament.section(publication(whole(ledger)), frozenset({PromptId(f"p{n}")}))

    assert [each for each in read if each] == [{f"p{n}"} for n in range(5)]


def test_keys_with_the_same_beginning_do_no_harm() -> None:
    """What is read too much has another key, by which nobody asks for it."""
    events = recorded(history(cup(), "a"))
    places = KeyPlaces()
    assert places.positions([key("unknown")]) == []
    places.note(events)

    answers = [each for each in events if isinstance(each.event, ResponseGenerated)]
    sought = {each.event.natural_key[0]: each.position for each in answers}
    assert places.positions(map(Digest, sought)) == [*sought.values()]
    other = Digest(next(iter(sought))[:16] + "0" * 48)
    assert places.positions([other]) == [next(iter(sought.values()))]
