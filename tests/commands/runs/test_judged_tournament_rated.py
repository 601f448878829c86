"""What is read for ratings alone says of every pairing what the whole ledger says."""

from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands.errors import ConfigurationError
from commands.importing.merge import merge_ledger
from commands.runs.judged_tournament import Perspective, RatedTournament, rated_tournament
from ledger.events.judging import PairReconciled
from ledger.events.registration import Instructions, Registered, TournamentOpened
from ledger.events.registry import Event
from ledger.events.values import type_name
from ledger.identity import StreamId
from ledger.reader import Columns
from ledger.store import Ledger
from projections.battles.comparisons import comparisons_of
from projections.fold import fold
from projections.tournament.folding import tournament_of
from projections.tournament.settlement import by_dimension, settle
from projections.verdicts.policies import DEFAULT_POLICY
from tests.support.builders.events import (
    STREAM,
    entrant,
    instructions,
    judge,
    known,
    opened,
    prompt,
    rubric,
)
from tests.support.builders.worlds import (
    JURORS,
    A,
    Fate,
    answered,
    become,
    court,
    cup,
    everything,
    history,
    matches_for,
    matches_of,
    reconciled,
    verdicts_of,
)
from tests.support.strategies.tournaments import tournament_histories

OTHER = StreamId("other")
N_COLUMNS = 8  # of an event that is decoded


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    """Give a ledger in memory."""
    with Ledger.in_memory() as ledger:
        yield ledger


def rated(
    ledger: Ledger,
    *,
    until: int | None = None,
    judge: str | None = None,
    dimension: str | None = None,
) -> RatedTournament | None:
    """Read what is rated."""
    return rated_tournament(ledger, STREAM, until, Perspective(judge, dimension))


def require_right(ledger: Ledger, found: RatedTournament | None, until: int | None = None) -> None:
    """Require battles and accounts as by all events, in the same order."""
    assert found is not None
    state = fold(tournament_of(STREAM), ledger.read(until=until))
    expected = by_dimension(state, settle(state, everything(state), found.judge))
    assert found.state.newest == state.newest
    for dimension, comparisons in found.comparisons.items():
        rows = comparisons_of(expected[dimension])
        assert comparisons.status.tolist() == rows.status.tolist()
        assert comparisons.account == rows.account
        one, other = comparisons.battles(ties="half"), rows.battles(ties="half")
        assert (one.entrants, one.prompts) == (other.entrants, other.prompts)
        assert (one.a.tolist(), one.b.tolist()) == (other.a.tolist(), other.b.tolist())
        assert (one.score.tolist(), one.cluster.tolist()) == (
            other.score.tolist(),
            other.cluster.tolist(),
        )


@settings(max_examples=25)
@given(events=tournament_histories(), data=st.data())
def test_every_pairing_ended_as_all_events_say(events: list[Event], data: st.DataObject) -> None:
    """Whichever tournament recorded what, and up to any position."""
    kinds = st.sampled_from([(STREAM,), (STREAM,), (OTHER,), (OTHER, STREAM), (STREAM, OTHER)])
    with Ledger.in_memory() as ledger:
        n_opening = 0
        for event in events:
            is_setting = isinstance(event, TournamentOpened | Registered)
            for stream in (STREAM, OTHER) if is_setting else data.draw(kinds):
                ledger.append(stream, [event])
            n_opening = ledger.head.position if is_setting else n_opening
        until = data.draw(st.integers(n_opening, ledger.head.position))

        require_right(ledger, rated(ledger, until=until), until)


def reopened(
    *,
    told: Instructions | None = None,
    gold: str = "aspirin",
    version: str = "1",
    names: Sequence[str] = ("zoe", "amy", "kim"),
    digest: str = "",
    model: str = "chrF2",
    opening: int = 2,
) -> tuple[Event, ...]:
    """Return another opening of the cup, in which something may differ."""
    changed = {"weights_digest": digest} if digest else {}
    return opened(
        opening=opening,
        told=told,
        prompts=[prompt("p1", gold=gold), prompt("p2")],
        rubrics=[rubric(version=version, text=f"# rubric {version}\nCompare.")],
        entrants=[entrant(name, **(changed if name == "kim" else {})) for name in names],
        judges=[judge(model=model)],
    )


FATES: tuple[Fate, ...] = ("a", "tie", "b", "inconsistent", "refused", "a")


@pytest.mark.parametrize(
    "later",
    [
        reopened(),
        reopened(gold="ibuprofen"),
        reopened(version="2"),
        reopened(digest="0" * 64),
        reopened(model="another"),
        reopened(names=("kim", "amy", "zoe")),
        reopened(names=("zoe", "kim")),
        reopened(names=("zoe", "amy", "kim", "bob")),
        (*reopened(gold="ibuprofen"), *reopened(opening=3)),
    ],
)
def test_what_is_asked_in_other_words_is_open_again(
    ledger: Ledger, later: tuple[Event, ...]
) -> None:
    """An outcome names its pair, and may be of another text."""
    ledger.append(STREAM, history(cup(), *FATES))
    ledger.append(STREAM, later)

    require_right(ledger, rated(ledger))
    state = fold(tournament_of(STREAM), ledger.read())
    matches = [match for match in matches_of(state) if match.forward_key not in state.verdicts]
    ledger.append(STREAM, [each for match in matches[:2] for each in become(match, "b")])
    require_right(ledger, rated(ledger))


def merged(ledger: Ledger) -> None:
    """Merge what another copy of the tournament recorded."""
    with Ledger.in_memory() as theirs:
        theirs.append(STREAM, history(cup(), *FATES))
        merge_ledger(ledger, list(theirs.rows()))


def redacted(ledger: Ledger) -> None:
    """Redact a response."""
    of = next(each for each in ledger.read() if type_name(each.event) == "ResponseGenerated")
    ledger.redact(of.position, "a key")


def told_otherwise(ledger: Ledger) -> None:
    """Change the instructions of the judges."""
    ledger.append(STREAM, reopened(told=instructions("Be kind."))[:1])


def recorded_twice(ledger: Ledger) -> None:
    """Record an outcome of queries that nobody sent."""
    match = matches_of(known(*history(cup(), *FATES)))[0]
    ledger.append(STREAM, [reconciled(match._replace(forward_key=match.swapped_key), "b")])


@pytest.mark.parametrize("upset", [merged, redacted, told_otherwise, recorded_twice])
def test_where_names_do_not_tell_more_is_read(
    ledger: Ledger, upset: Callable[[Ledger], None]
) -> None:
    """Then keys say which outcome is whose, as they do for all other commands."""
    ledger.append(STREAM, history(cup(), "a", "tie"))
    assert rated(ledger) is not None

    upset(ledger)

    assert rated(ledger) is None


def test_before_its_opening_there_is_nothing_to_rate(ledger: Ledger) -> None:
    """Whoever reads all of it finds the words for that."""
    ledger.append(OTHER, cup())
    ledger.append(STREAM, cup())

    assert rated(ledger, until=len(cup())) is None


def test_the_first_judge_with_outcomes_is_shown(ledger: Ledger) -> None:
    """As for all other commands; a name chooses another."""
    ledger.append(STREAM, court(2))
    first = rated(ledger)
    match = matches_for(known(*court(2)), JURORS[1])[0]
    ledger.append(STREAM, verdicts_of(match, JURORS[1], A))
    key = match.key(JURORS[1].judge_id, DEFAULT_POLICY)
    ledger.append(STREAM, [PairReconciled(outcome="a", **key._asdict())])

    found, named = rated(ledger), rated(ledger, judge="ann")

    assert [each.judge for each in (first, found, named) if each] == [
        JURORS[0],
        JURORS[1],
        JURORS[0],
    ]
    require_right(ledger, found)
    require_right(ledger, named)
    with pytest.raises(ConfigurationError, match="--judge 'eve' is not a judge"):
        rated(ledger, judge="eve")


def test_one_dimension_is_enough(ledger: Ledger) -> None:
    """The other's open pairs are not looked for."""
    rubrics = [rubric("factuality"), rubric("utility", needs_gold=False)]
    ledger.append(STREAM, history(opened(rubrics=rubrics), "a", "b"))

    found = rated(ledger, dimension="utility")

    assert found is not None
    assert [*found.comparisons] == ["utility"]
    require_right(ledger, found)


def test_of_what_was_judged_no_response_is_read(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts are most of a ledger's bytes, and hashing them took half of the time."""
    ledger.append(STREAM, history(cup(), "a", "a", "b", "tie", "inconsistent", "pending"))
    ledger.append(OTHER, answered(cup()))
    read: list[str] = []
    before = Ledger.select

    def selecting(self: Ledger, query: str, *parameters: str | bytes | int) -> list[Columns]:
        found = before(self, query, *parameters)
        read.extend(row[2] for row in found if len(row) == N_COLUMNS)
        return found

    monkeypatch.setattr(Ledger, "select", selecting)

    assert rated(ledger) is not None

    assert read.count("PairReconciled") == 5
    assert (
        read.count("ResponseGenerated") == 4 + 1
    )  # both tournaments' of the open pair; the newest
    assert "VerdictReceived" not in read
