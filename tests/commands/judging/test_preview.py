"""What a judge would be sent about a prompt, without sending it."""

import pytest

from commands.errors import ConfigurationError
from commands.judging.preview import RequestPreview, preview_requests
from ledger.events.registry import Event
from projections.verdicts.queries import JudgeQuery
from tests.support.builders.events import known, opened, prompt, responses, rubric
from tests.support.builders.worlds import cup, matches_of

RUBRICS = (rubric("factuality"), rubric("style", needs_gold=False))


def as_sent(query: JudgeQuery) -> dict[str, object]:
    """Return the request of a provider that is sent the user text alone."""
    return {"content": (query.user,)}


def previews(prompt_id: str, *events: Event) -> tuple[RequestPreview, ...]:
    """Return what the first judge would be sent."""
    state = known(*events)
    return preview_requests(state, prompt_id, state.panel[0], as_sent)


def texts(opening: tuple[Event, ...], **of_p1: str) -> tuple[Event, ...]:
    """Return an opening and these responses to the first prompt."""
    made = {(name, "p1"): text for name, text in of_p1.items()}
    return (*opening, *responses(known(*opening), made))


def test_the_first_pair_is_shown_on_each_dimension_as_it_is_sent() -> None:
    """A rubric's author wants to read one request, and each rubric stands in another."""
    events = texts(opened(rubrics=RUBRICS), base="yes", tuned="no")

    shown = previews("p1", *events)

    keys = [match.forward.query_key for match in matches_of(known(*events))[:2]]
    assert [each.query_key for each in shown] == keys
    assert [each.dimension for each in shown] == ["factuality", "style"]
    assert [each.request for each in shown] == [{"content": [each.user]} for each in shown]
    assert [each.order for each in shown] == ["forward", "forward"]


def test_a_dimension_that_needs_a_gold_answer_is_left_out_where_there_is_none() -> None:
    """Nobody is asked on it."""
    opening = opened(prompts=[prompt("p1", gold=None)], rubrics=RUBRICS)

    (shown,) = previews("p1", *texts(opening, base="yes", tuned="no"))

    assert shown.dimension == "style"


def test_different_responses_are_shown_rather_than_equal_ones() -> None:
    """Equal ones may tie unasked, and show less of what a judge has to compare."""
    (shown,) = previews("p1", *texts(cup(1), zoe="yes", amy="yes", kim="no"))

    assert (shown.entrant_a, shown.entrant_b) in {("zoe", "kim"), ("amy", "kim")}


def test_a_pair_is_shown_as_soon_as_two_have_responded() -> None:
    """The third may take another night."""
    (shown,) = previews("p1", *texts(cup(1), zoe="yes", kim="no"))

    assert (shown.entrant_a, shown.entrant_b) == ("zoe", "kim")


@pytest.mark.parametrize(
    ("prompt_id", "events", "why"),
    [
        ("p3", cup(2), "--show-prompt 'p3' is not a prompt_id; did you mean 'p2' or 'p1'?"),
        ("zebra", cup(1), "--show-prompt 'zebra' is not a prompt_id; see [prompts] bank"),
        ("p1", texts(cup(1), zoe="yes"), "no two entrants have responded to it; run `tourney"),
        ("p1", opened(prompts=[prompt("p1", gold=None)]), "every rubric needs a gold answer, and"),
    ],
)
def test_what_cannot_be_shown_is_told_with_the_reason(
    prompt_id: str, events: tuple[Event, ...], why: str
) -> None:
    """An empty screen would look as if the judge were sent nothing."""
    with pytest.raises(ConfigurationError) as caught:
        previews(prompt_id, *events)

    assert why in str(caught.value)
