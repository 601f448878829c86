"""A query as a request for a chat completion."""

from commands.backends.endpoint.requests import ChatRequestForm
from projections.verdicts.queries import VERDICT_SCHEMA
from tests.support.builders.events import judge
from tests.support.contracts import QUERIES

TURNS = [
    {"role": "system", "content": QUERIES[0].system},
    {"role": "user", "content": QUERIES[0].user},
]


def params(protocol: str) -> object:
    """Return the parameters of a request to a judge with this protocol."""
    given = (("max_tokens", 64.0), ("protocol", protocol))
    by = judge("served", provider="endpoint", model="org/judge", parameters=given)
    return ChatRequestForm(by).params(QUERIES[0])


def test_a_request_holds_both_texts_and_asks_for_the_likeliest_reply() -> None:
    """A judge that draws its verdict by lot could not be asked again."""
    assert params("line") == {
        "model": "org/judge",
        "messages": TURNS,
        "max_tokens": 64,
        "temperature": 0.0,
    }


def test_the_schema_is_sent_where_it_is_the_protocol() -> None:
    """The server's grammar then enforces the shape of the reply."""
    wanted = {"name": "verdict", "strict": True, "schema": dict(VERDICT_SCHEMA)}

    assert params("schema") == {
        "model": "org/judge",
        "messages": TURNS,
        "max_tokens": 64,
        "temperature": 0.0,
        "response_format": {"type": "json_schema", "json_schema": wanted},
    }
