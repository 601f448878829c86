"""Entrants behind servers with OpenAI's API."""

from collections.abc import Mapping

from commands.backends.endpoint.askers import EndpointResponder
from commands.backends.endpoint.server import Endpoint
from commands.ports import ResponderOf
from ledger.identity import EntrantId


def responder_of(served: Mapping[EntrantId, Endpoint]) -> ResponderOf:
    """Return who answers for an entrant, given who serves whom."""
    return lambda entrant, refused: EndpointResponder(entrant, served[entrant.entrant_id], refused)
