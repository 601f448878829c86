"""Consent before money is spent: who is asked, about what, and when the answer is no."""

from dataclasses import replace

import pytest

from commands.decisions.recorder import Recorder
from commands.errors import Refused
from commands.spending.budget import Offer, PriceUnknown, SpendingOptions, no_price
from commands.spending.consent import (
    approve_requests,
    require_allowed,
    require_consent,
)
from commands.spending.endpoints import Request
from commands.spending.pricing import PriceBook
from tests.support.builders.events import STREAM, entrant
from tests.support.builders.money import requests_of
from tests.support.scripted import ScriptedTerminal

HERE = entrant("base", weights="claude-opus-5-5")  # a folder that is called like a model
PRICED = entrant("priced", loader="endpoint", weights="claude-opus-5-5", dtype=None)
UNPRICED = entrant("unpriced", loader="endpoint", weights="org/mine", dtype=None)
BOOK = PriceBook(None, cache="off", retries=0)


def offer(cap_usd: float | None = None) -> Offer:
    """Return an offer of two dollars."""
    return Offer(4, ("claude-opus-5-5",), 2.0, 3.0, spent_usd=1.0, cap_usd=cap_usd)


def test_without_a_terminal_consent_is_given_beforehand_or_not_at_all() -> None:
    """A job at night must fail before it generates anything, not when it comes to judging."""
    require_allowed([offer()], SpendingOptions(agreed=True), ScriptedTerminal().console)
    require_allowed([offer()], SpendingOptions(), ScriptedTerminal(answer=True).console)

    why = r"^requests to claude-opus-5-5 cost money, .* --yes --max-usd N; .* shows the cost$"
    with pytest.raises(Refused, match=why):
        require_allowed([offer()], SpendingOptions(), ScriptedTerminal().console)


def test_an_offer_is_confirmed_with_its_dollars() -> None:
    """Nobody agrees to an amount that is not said."""
    terminal = ScriptedTerminal(answer=True)

    require_consent(offer(), SpendingOptions(), terminal.console)

    assert terminal.asked == [offer().question]
    assert "about $2.00 (at worst $3.00)" in terminal.asked[0]


def test_a_no_sends_nothing() -> None:
    """It ends the command."""
    with pytest.raises(Refused, match=r"^not confirmed: nothing was sent$"):
        require_consent(offer(), SpendingOptions(), ScriptedTerminal(answer=False).console)


def test_an_offer_above_the_cap_is_refused_before_anybody_is_asked() -> None:
    """A yes would not help; what is spent counts against the cap."""
    terminal = ScriptedTerminal(answer=True)

    with pytest.raises(Refused, match=r"^the cap is \$2\.50: \$1\.00 is spent, and 4 requests to"):
        require_consent(offer(cap_usd=2.5), SpendingOptions(), terminal.console)

    assert not terminal.asked


def test_all_that_stands_in_the_way_is_said_at_once() -> None:
    """Whoever mends one thing after the other runs the command as often."""
    judging = replace(offer(cap_usd=9.0), expected_usd=None, unpriced=("claude-opus-5-5",))
    generating = Offer(1, ("org/mine",), None, None, 0.0, cap_usd=9.0, unpriced=("org/mine",))
    both = judging.with_other(generating)

    with pytest.raises(Refused) as raised:
        require_allowed([judging, both], SpendingOptions(), ScriptedTerminal().console)

    cap, consent = str(raised.value).splitlines()
    assert cap.startswith("a cap is set, and claude-opus-5-5, org/mine have no price, so it cannot")
    assert consent.startswith("requests to claude-opus-5-5, org/mine may cost money")
    assert (judging.requests, generating.requests) == (
        "4 requests to claude-opus-5-5",
        "1 request to org/mine",
    )


@pytest.mark.parametrize(("cap_usd", "n_told"), [(None, 0), (9.0, 1)])
def test_a_model_without_a_price_is_told_where_there_is_a_cap(
    recorder: Recorder, cap_usd: float | None, n_told: int
) -> None:
    """Its requests may cost money that the cap does not see; its owner's server costs none."""
    terminal, spending = ScriptedTerminal(), SpendingOptions(max_usd=cap_usd)

    requests = [Request(who, "Why?") for who in (UNPRICED, HERE, UNPRICED)]
    approve_requests(recorder, requests, BOOK, spending, terminal.console)

    why = f"{no_price('org/mine')}; until then"
    assert terminal.told == [f"{why} --max-usd does not count it"] * n_told


HOSTED = replace(BOOK, hosted=frozenset({UNPRICED.entrant_id}))


def test_a_hosted_model_without_a_price_is_asked_only_with_consent(recorder: Recorder) -> None:
    """Whoever runs the server may bill it; the question says that nobody knows how much."""
    terminal, requests = (
        ScriptedTerminal(answer=True),
        [Request(who, "Why?") for who in (UNPRICED, PRICED)],
    )

    approve_requests(recorder, requests, HOSTED, SpendingOptions(), terminal.console)

    (question,) = terminal.asked
    assert question.startswith("Submit 2 requests to org/mine, claude-opus-5-5 for about $? (at")
    assert question.endswith("? The price of org/mine is unknown.")
    with pytest.raises(Refused, match=r"\(org/mine has no price\), .* --yes, or add a price with"):
        approve_requests(recorder, requests, HOSTED, SpendingOptions(), ScriptedTerminal().console)


def test_a_cap_on_a_hosted_model_without_a_price_is_refused(recorder: Recorder) -> None:
    """It could not be kept, and a yes to an unknown amount is none."""
    spending = SpendingOptions(agreed=True, max_usd=9.0)

    with pytest.raises(PriceUnknown, match=r"org/mine has no price, .* add one with \[judge\]"):
        approve_requests(
            recorder, [Request(UNPRICED, "?")], HOSTED, spending, ScriptedTerminal().console
        )


def test_requests_to_endpoints_are_offered_as_one(recorder: Recorder) -> None:
    """Only those with a price are counted, whoever else is asked."""
    terminal = ScriptedTerminal(answer=True)
    requests = [Request(who, "Why?") for who in (PRICED, HERE, PRICED, UNPRICED)]

    approve_requests(recorder, requests, BOOK, SpendingOptions(), terminal.console)

    (question,) = terminal.asked
    assert question.startswith("Submit 2 requests to claude-opus-5-5 for about $")


def test_what_entrants_have_cost_counts_against_the_cap(recorder: Recorder) -> None:
    """Nobody is asked about a dollar that the cap does not have any more."""
    recorder.ledger.append(STREAM, requests_of("priced", 8.0))
    recorder.catch_up()
    terminal, spending = ScriptedTerminal(answer=True), SpendingOptions(max_usd=8.0)

    with pytest.raises(
        Refused, match=r"^the cap is \$8.00: \$8.00 is spent, and 1 request to claude"
    ):
        approve_requests(recorder, [Request(PRICED, "?")], BOOK, spending, terminal.console)

    assert terminal.asked == []
