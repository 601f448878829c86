"""Votes are recorded one by one, and the last on a ballot counts."""

from typing import Any

import pytest
from msgspec.structs import replace

from commands.errors import ConfigurationError
from commands.importing.imported_set import imported_set
from commands.importing.votes import BallotBox, open_ballot_box
from ledger.events.imports import BattlesImported, ImportedBattle, SampleDesign, battles_stream
from ledger.identity import Dimension
from ledger.store import Ledger
from tests.support.builders.events import STREAM, key, known
from tests.support.builders.worlds import cup, history

EVENTS = history(cup(), "a", "b", "inconsistent")


def opened_box(
    ledger: Ledger,
    *,
    annotator: str = "ann",
    design: SampleDesign = "random",
    limit: int | None = None,
) -> BallotBox:
    """Return the ballots of a cup."""
    return open_ballot_box(
        ledger,
        known(*EVENTS),
        "votes",
        annotator,
        dimension=Dimension("factuality"),
        design=design,
        limit=limit,
    )


def winners(ledger: Ledger) -> list[str]:
    """Return the votes that count, as ratings read them."""
    found = imported_set(ledger, "votes", ledger.head.position)
    return [battle.winner for event in found.events for battle in event.battles()]


def test_a_vote_is_a_battle_of_a_set_with_the_annotators_label(ledger: Ledger) -> None:
    """So agreement and ratings take it as they take any human vote."""
    box = opened_box(ledger)

    assert box.cast(0, "b", n_before=0)

    (event,) = [each.event for each in ledger.read(stream=battles_stream("votes"))]
    assert isinstance(event, BattlesImported)
    ballot = box.ballots[0]
    prompt = ballot.pairing.prompt.prompt_id
    assert [*event.battles()] == [
        ImportedBattle(ballot.entrant_a, ballot.entrant_b, "model_b", None, prompt, "human", "ann")
    ]
    assert event.drawn
    assert (event.drawn.tournament, event.drawn.design) == (STREAM, "random")
    assert event.drawn.seed == 20260427


def test_voting_goes_on_where_it_stopped(ledger: Ledger) -> None:
    """A skipped pair is not put again; it has no verdict."""
    box = opened_box(ledger)
    box.cast(0, "a", n_before=0)
    box.cast(1, "skip", n_before=0)

    again, other = opened_box(ledger), opened_box(ledger, annotator="bob")

    assert (box.next_open, box.n_done) == (again.next_open, again.n_done) == (2, 2)
    assert (other.next_open, other.n_done) == (0, 0)
    assert again.ballots == other.ballots == box.ballots
    assert again.vote_on(1) == box.vote_on(1)
    assert winners(ledger) == ["model_a", "no verdict"]


def test_another_vote_on_a_ballot_replaces_the_first(ledger: Ledger) -> None:
    """It is an event, too: nothing is taken back, and the last one counts."""
    box = opened_box(ledger)
    box.cast(0, "a", n_before=0)

    assert box.cast(0, "tie", n_before=1)

    assert winners(ledger) == ["tie"]
    assert len([*ledger.read(stream=battles_stream("votes"))]) == 2
    assert box.n_done == opened_box(ledger).n_done == 1


def test_two_windows_of_one_annotator_are_one(ledger: Ledger) -> None:
    """Each is a process of its own, which was begun before the other's votes."""
    first, second = opened_box(ledger), opened_box(ledger)
    first.cast(0, "a", n_before=0)

    assert not second.cast(0, "b", n_before=0)

    assert second.next_open == first.next_open == 1
    assert second.cast(0, "b", n_before=1)
    assert winners(ledger) == ["model_b"]


class Overtaken(Ledger):
    """A ledger on which another window votes at the last moment."""

    rival: BallotBox | None = None

    def append(self, *given: Any, **named: Any) -> Any:  # noqa: ANN401  # as it is called
        """Let the other vote first."""
        rival, self.rival = self.rival, None
        if rival is not None:
            rival.cast(0, "b", n_before=0)
        return super().append(*given, **named)


def test_a_vote_that_comes_too_late_by_a_moment_does_not_replace_the_other() -> None:
    """What the other window recorded since the votes were read was not known to this one."""
    with Overtaken.in_memory() as ledger:
        box, ledger.rival = opened_box(ledger), opened_box(ledger)

        assert not box.cast(0, "a", n_before=0)
        assert winners(ledger) == ["model_b"]


def test_two_annotators_vote_at_once(ledger: Ledger) -> None:
    """Each on the same pairs, in a process of their own."""
    ann, bob = opened_box(ledger), opened_box(ledger, annotator="bob")

    assert ann.cast(0, "a", n_before=0)
    assert bob.cast(0, "b", n_before=0)
    assert ann.cast(1, "tie", n_before=0)

    assert winners(ledger) == ["model_a", "model_b", "tie"]
    assert (ann.n_done, bob.n_done) == (2, 1)


def test_a_set_that_two_begin_at_once_has_one_sample(ledger: Ledger) -> None:
    """Pairs that were drawn by disagreement would pass for a random sample."""
    ann, bob = opened_box(ledger), opened_box(ledger, annotator="bob", design="disagreement")
    ann.cast(0, "a", n_before=0)

    with pytest.raises(ConfigurationError, match=r"drawn otherwise \(random"):
        bob.cast(0, "a", n_before=0)

    assert winners(ledger) == ["model_a"]


def test_all_voted_on_is_done(ledger: Ledger) -> None:
    """A limit is the size of the sample."""
    box = opened_box(ledger, limit=2)

    box.cast(0, "a", n_before=0)
    box.cast(1, "a", n_before=0)

    assert box.next_open is None
    assert opened_box(ledger).ballots[:2] == box.ballots


def test_a_set_has_one_sample(ledger: Ledger) -> None:
    """Votes that were drawn in several ways would be a sample of nothing."""
    opened_box(ledger).cast(0, "a", n_before=0)

    drawn = r"drawn otherwise \(random, seed 20260427, of 'main' on 'factuality'\)"
    with pytest.raises(ConfigurationError, match=f"{drawn}.*use another --name"):
        opened_box(ledger, design="disagreement")


def test_a_set_goes_on_with_the_seed_that_it_was_begun_with(ledger: Ledger) -> None:
    """Earlier versions let one choose it, and what was drawn is on record."""
    box = opened_box(ledger)
    box.sample = replace(box.sample, seed=11)
    box.cast(0, "a", n_before=0)

    assert opened_box(ledger).sample.seed == 11


def test_a_set_that_was_imported_is_left_as_it_is(ledger: Ledger) -> None:
    """Its battles were drawn by nobody."""
    battle = ImportedBattle("zoe", "amy", "tie", None, "p1", "human", "ann")
    event = BattlesImported.of(
        [battle], file_digest=key("file"), mapping=("plain", 1), chunk=1, n_skipped=0
    )
    ledger.append(battles_stream("votes"), [event])

    with pytest.raises(ConfigurationError, match="imported from a file; vote under another --name"):
        opened_box(ledger)


def test_nothing_to_vote_on_is_told(ledger: Ledger) -> None:
    """With the reason."""
    box = opened_box(ledger, design="disagreement")
    assert len(box.ballots) == 1

    with pytest.raises(ConfigurationError, match="on 'factuality' judges disagree on no pair"):
        open_ballot_box(
            ledger,
            known(*history(cup(), "a")),
            "others",
            "ann",
            dimension=Dimension("factuality"),
            design="disagreement",
        )
    with pytest.raises(ConfigurationError, match="no pair has both responses"):
        open_ballot_box(
            ledger,
            known(*cup()),
            "others",
            "ann",
            dimension=Dimension("factuality"),
            design="random",
        )
