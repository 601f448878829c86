"""What is posted by hand is what the SDK would post, and fails as it would."""

import json
from collections.abc import Mapping

import openai
import pytest

from commands.backends.endpoint.post import posting
from commands.backends.endpoint.requests import PATH
from commands.backends.endpoint.server import Endpoint
from ledger.identity import Json
from tests.providers.openai import MODEL, FakeOpenAI, Fault

BODY: Mapping[str, Json] = {
    "model": MODEL,
    "max_tokens": 3,
    "messages": ({"role": "user", "content": "Wie heiß?"},),
}


def test_the_server_is_asked_in_the_clients_name() -> None:
    """With its key, once."""
    with (
        FakeOpenAI(api_key="sk-1") as fake,
        Endpoint(fake.url, "m", "sk-1").client() as client,
        posting(client) as poster,
    ):
        answer = json.loads(poster.post(PATH, BODY))

    assert answer["model"] == MODEL
    assert fake.traffic.asked == [json.loads(json.dumps(BODY))]
    assert fake.traffic.keys == ["sk-1"]


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("bad_request", openai.APIStatusError),
        ("rate_limited", openai.APIStatusError),
        ("server_error", openai.InternalServerError),
        ("cut", openai.APIConnectionError),
        ("no_quota", openai.APIStatusError),
    ],
)
def test_a_failure_is_the_sdks(fault: str, kind: type[openai.APIError]) -> None:
    """So it is read in one place, whichever way a request went."""
    with (
        FakeOpenAI() as fake,
        Endpoint(fake.url, "m", None).client() as client,
        posting(client) as poster,
    ):
        fake.inject(Fault(fault), Fault(fault))  # type: ignore[arg-type]  # as parametrised
        with pytest.raises(openai.APIError) as ours:
            poster.post(PATH, BODY)
        with pytest.raises(openai.APIError) as theirs:
            client.post(PATH, body=BODY, cast_to=object)

    assert isinstance(ours.value, kind)
    assert isinstance(theirs.value, kind)
    assert str(ours.value) == str(theirs.value)
    assert ours.value.body == theirs.value.body
    assert ours.value.code == theirs.value.code
