"""A tournament with every kind of result: judged by two, paid for, and evaluated."""

from itertools import cycle

from msgspec.structs import replace

from ledger.events.judging import VerdictReceived
from ledger.events.money import Usage
from ledger.events.registration import EntrantRegistered, Reference, TournamentOpened
from ledger.events.registry import Event
from ledger.events.requests import Charge, RequestsSettled
from ledger.identity import EntrantId
from tests.support.builders.evaluations import (
    answer,
    choice,
    choices,
    completed,
    item,
    observed,
    plan,
    unscorable,
)
from tests.support.builders.events import entrant, judge, key, known, opened, prompt, rubric
from tests.support.builders.money import OPUS, put
from tests.support.builders.worlds import (
    JURORS,
    SLOT_A,
    TIE,
    A,
    B,
    answered,
    matches_for,
    verdicts_of,
)

CONFIGURATION = """{
    "elo": {"k": 24, "permutations": 20, "bootstraps": 40},
    "bradley_terry": {"anchor": "kim", "anchor_rating": 1200, "prior_sd": 300}
}"""
JUDGES = (JURORS[0], judge("bob", provider="anthropic", model="claude-opus-5-5"), JURORS[2])
USED = Usage(n_input=100, n_output=20, n_cache_read=50)


def judged() -> tuple[Event, ...]:
    """Return a tournament on two dimensions, with two judges that were paid and one that waits."""
    opening, *others = answered(
        opened(
            prompts=[prompt(f"p{n}") for n in range(12)],
            rubrics=[rubric("factuality"), rubric("utility")],
            entrants=[
                entrant("zoe", loader="endpoint", weights="claude-opus-5-5", dtype=None),
                entrant("amy", loader="endpoint", weights="mine", dtype=None),
                entrant("kim"),
                entrant("sam"),
            ],
            judges=JUDGES,
        )
    )
    assert isinstance(opening, TournamentOpened)
    events = (replace(opening, configuration=CONFIGURATION), *others)
    state = known(*events)
    said = cycle([A, TIE, B, A, SLOT_A, A, B])
    return (
        *events,
        *(
            event
            for juror in JUDGES[:2]
            for match in matches_for(state, juror)[:-9]
            for event in (
                put(match, match.forward, by=juror.judge_id),
                put(match, match.swapped, by=juror.judge_id),
                *map(paid, verdicts_of(match, juror, next(said))),
            )
        ),
        RequestsSettled(
            number=1,
            entrant=EntrantId("zoe"),
            model="claude-opus-5-5",
            charges=(Charge(request=key("asked"), fate="answered", usage=USED, usd=0.25),),
            price_table="prices of then",
        ),
    )


def paid(event: Event) -> Event:
    """Let a verdict have cost something, if it is one; the price of bob's is unknown."""
    if not isinstance(event, VerdictReceived):
        return event
    return replace(event, usage=USED, price=None if event.judge == "bob" else OPUS)


def evaluated() -> tuple[Event, ...]:
    """Return two evaluations of zoe, one of them incomplete."""
    recall = plan("zoe", n_available=9)
    mmlu = plan("zoe", evaluation="mmlu", kind="comparison", run_key=key("mmlu"))
    return (
        recall,
        *observed(recall, [answer(1.0), answer(0.0), answer(0.0, finish_reason="length")]),
        unscorable(recall, 3),
        completed(recall, 3, 1),
        mmlu,
        *observed(mmlu, [choices(choice(-1.0), choice(-2.0))]),
    )


def trained() -> list[Event]:
    """Return evaluations of one model at two steps."""
    events: list[Event] = [item(0)]
    for number, step in enumerate((10, 20), 1):
        who = entrant("probe", weights=f"in memory, at step {step}", step=step)
        planned = replace(
            plan("probe", n_items=1),
            number=number,
            run_key=key(f"{step}"),
            entrant=Reference(label="probe", digest=who.content_digest),
        )
        seen = observed(planned, [answer(number / 2)])
        registered = EntrantRegistered(digest=who.content_digest, entrant=who)
        events += (registered, planned, *seen, completed(planned, 1))
    return events
