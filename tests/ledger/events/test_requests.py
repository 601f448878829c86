"""What names the requests to an entrant."""

from ledger.events.requests import Charge, RequestsSettled, RequestsSubmitted
from ledger.identity import Digest, EntrantId
from tests.support.builders.events import key


def submitted(number: int, *requests: Digest, usd: float = 0.5) -> RequestsSubmitted:
    """Return requests that are under way."""
    return RequestsSubmitted(
        number=number,
        entrant=EntrantId("base"),
        model="org/base",
        requests=requests,
        worst_usd=(usd,) * len(requests),
    )


def settled(number: int, *requests: Digest, usd: float = 0.5) -> RequestsSettled:
    """Return requests that were answered."""
    return RequestsSettled(
        number=number,
        entrant=EntrantId("base"),
        model="org/base",
        charges=tuple(Charge(request=each, fate="answered", usd=usd) for each in requests),
        price_table=None,
    )


def test_the_same_requests_may_be_sent_and_end_again() -> None:
    """After a kill they are asked again, and both times may be billed."""
    one, two = key("one"), key("two")

    for made in (submitted, settled):
        name = made(1, one, two).natural_key
        assert name == made(1, one, two, usd=0.25).natural_key
        assert name not in {made(2, one, two).natural_key, made(1, one).natural_key}
