"""Events of requests to endpoint entrants, which may cost money: what is sent, and what it cost.

They are the same for responses and evaluation samples. An answer that no evaluation can score was
paid for all the same.
"""

from msgspec import UNSET, UnsetType

from ledger.events.judging import Fate
from ledger.events.money import Usage
from ledger.events.values import Dollars, Fact, Ordinal, Value
from ledger.identity import Digest, EntrantId, digest_of


class ServerFacts(Value, frozen=True):
    """What a server says of itself and of a model; None: it does not say."""

    name: str | None = None  # of its software, such as "vllm"
    version: str | None = None  # of its software
    weights: str | None = None  # a folder, or an id on a hub
    revision: str | None = None  # of the weights
    adapter: str | None = None  # likewise, if the model is one on top of the weights
    template: Digest | None = None  # SHA-256 of its chat template
    is_deterministic: bool | None = None  # texts do not depend on the batch they are made in


class RequestsSubmitted(Fact, frozen=True):
    """Requests to an entrant are about to be sent; recorded before they can cost money."""

    number: Ordinal  # 1, 2 ... of the tournament's
    entrant: EntrantId
    model: str  # the server's name for it
    requests: tuple[Digest, ...]  # response keys, or keys of evaluation samples
    worst_usd: tuple[Dollars | None, ...]  # of each; None: nobody knows the price
    server: ServerFacts | UnsetType = UNSET  # of a command's first requests, if it says anything

    @property
    def natural_key(self) -> tuple[str, ...]:
        """The same request may be sent again, under another number."""
        return (digest_of([self.number, self.entrant, *self.requests]),)


class Charge(Value, frozen=True):
    """What became of a request, and what it cost."""

    request: Digest
    fate: Fate
    usage: Usage | None = None  # None: not told, or there was no answer
    usd: Dollars | None = 0.0  # perhaps billed: at worst; None: the price is unknown
    detail: str = ""  # why there is no answer, or no usage


class ParameterRefused(Fact, frozen=True):
    """A server does not take a parameter for a model: later requests go without it.

    Judges and entrants share it. It changes no key of a query or response.
    """

    key_fields = ("base_url", "model", "parameter")  # learnt once
    base_url: str
    model: str  # the server's name for it
    parameter: str
    instead: str | None  # under which name its value is sent; None: it is left out
    detail: str  # the server's words


class RequestsSettled(Fact, frozen=True):
    """Requests to an entrant ended, with or without an answer."""

    number: Ordinal  # 1, 2 ... of the tournament's
    entrant: EntrantId
    model: str
    charges: tuple[Charge, ...]
    price_table: str | None  # which table the price is from, and of what date; None: none has it

    @property
    def natural_key(self) -> tuple[str, ...]:
        """Each of these requests ends once."""
        return (
            digest_of([self.number, self.entrant, *(charge.request for charge in self.charges)]),
        )
