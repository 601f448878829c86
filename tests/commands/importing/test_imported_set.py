"""An imported set is what projections show in place of a tournament."""

import numpy as np
import pytest

from commands.errors import ConfigurationError
from commands.importing.imported_set import SelectedSet, imported_set
from ledger.events.imports import (
    BattlesImported,
    CodedColumn,
    ImportedRating,
    RatingsImported,
    battles_stream,
)
from ledger.identity import Dimension
from ledger.store import Ledger
from tests.support.builders.battles import imported_battles
from tests.support.builders.events import STREAM, key, verdicts

VOTES = imported_battles(
    ("y", "x", "y"),
    ("x", "y", "z"),
    winners=CodedColumn.of(["model_a", "tie", "no verdict"]),
    prompts=CodedColumn.of(["q1", "q2", None]),
)
JUDGED = imported_battles(
    file_digest=key("judged"),
    prefs=CodedColumn((0.25,)),
    sources=CodedColumn(("llm-judge",)),
    judges=CodedColumn(("opus",)),
)
UNSAID = imported_battles(sources=CodedColumn(("unknown",)))
RATINGS = RatingsImported(
    file_digest=key("ratings"),
    format="judgearena",
    mapping_version=1,
    ratings=(ImportedRating(entrant="base", rating=1000.0, source="human"),),
)


def selected(*events: BattlesImported) -> SelectedSet:
    """Return a set of these battles."""
    return SelectedSet("arena", events, as_of=7)


def test_a_set_says_who_decided_and_how_often() -> None:
    """People, judges or both; each battle is in the account."""
    both = selected(VOTES, JUDGED)

    assert both.judged == "arena: people's votes and judge opus."
    assert selected(VOTES).judged == "arena: people's votes."
    assert selected(JUDGED).judged == "arena: judge opus."
    assert selected(UNSAID).judged == "arena: battles of unknown source."
    assert both.accounts == ("arena: 4 battles = 2 decided + 1 tied + 1 without a verdict",)
    assert both.facts == {"battles": "arena", "as_of": 7, "judge": "opus", "judges": ["opus"]}
    assert both.roster == ["x", "y", "z"]


def test_who_rated_an_entrant_is_unknown_where_no_vote_on_it_says_so() -> None:
    """Beside people's votes, battles of unknown source are not taken for theirs."""
    unsaid = imported_battles(("v",), ("w",), sources=CodedColumn(("unknown",)))
    mixed = selected(VOTES, unsaid)

    told = {name: mixed.source_of(name, "human") for name in "vxy"}
    assert told == {"v": "unknown", "x": "human", "y": "human"}
    assert mixed.source_of("v", "evaluated") == "evaluated"


def test_several_judges_are_not_one() -> None:
    """A result in JSON names the judge only where there is one."""
    other = imported_battles(file_digest=key("more"), judges=CodedColumn(("gpt",)))

    found = selected(JUDGED, other)

    assert (found.judge_id, found.judge_names) == (None, ["gpt", "opus"])
    assert "judges gpt, opus" in found.judged


def test_preferences_are_rated_unless_a_tie_is_an_outcome() -> None:
    """As `project bt` does: Davidson's model takes whole outcomes only."""
    by_ties = [
        selected(JUDGED).rated_battles(ties)[Dimension("arena")] for ties in ("half", "davidson")
    ]

    np.testing.assert_array_equal([each.score[0] for each in by_ties], [0.75, 1.0])


def test_a_set_is_read_up_to_a_position() -> None:
    """Of its own stream alone; what came later is not there."""
    with Ledger.in_memory() as ledger:
        ledger.append(battles_stream("arena"), [VOTES])
        ledger.append(battles_stream("lab"), [JUDGED])
        ledger.append(battles_stream("arena"), [imported_battles(chunk=2)])

        assert imported_set(ledger, "arena", 2).events == (VOTES,)
        assert len(imported_set(ledger, "arena", 3).events) == 2
        assert imported_set(ledger, "lab", 3).events == (JUDGED,)


def test_an_unknown_set_is_refused_with_those_that_have_battles() -> None:
    """A tournament is no set, and one that has ratings alone has no battles to show."""
    with Ledger.in_memory() as ledger:
        ledger.append(STREAM, verdicts(1))
        ledger.append(battles_stream("published"), [RATINGS])
        with pytest.raises(ConfigurationError, match=r"as 'x'; there are: none, see `tourney impo"):
            imported_set(ledger, "x", 9)
        ledger.append(battles_stream("lab"), [JUDGED])
        ledger.append(battles_stream("arena"), [VOTES])

        with pytest.raises(ConfigurationError, match=r"as 'published'; there are: lab, arena$"):
            imported_set(ledger, "published", 9)
