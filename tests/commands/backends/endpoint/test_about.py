"""What servers say of themselves, each in its own way, or not at all."""

import pytest

from commands.backends.endpoint.about import doubt, facts_of
from commands.backends.endpoint.server import Endpoint
from commands.decisions.recorder import Recorder
from commands.entrants.endpoint_generator import EndpointGenerator
from commands.entrants.generate import generate_missing
from commands.ports import no_progress
from commands.settings.api_keys import redacted
from ledger.events.requests import RequestsSubmitted, ServerFacts
from ledger.identity import EntrantId
from tests.providers.dialects import BASE, DIALECTS, Dialect
from tests.providers.openai import FakeOpenAI, Json
from tests.support.builders.commands import open_tournament
from tests.support.builders.endpoints import responder_of, unlimited
from tests.support.builders.events import entrant, opened, prompt


def told_by(fake: FakeOpenAI, model: str = BASE) -> ServerFacts | None:
    """Return what a fake says of itself."""
    server = Endpoint(fake.url, "entrant", None)
    with server.client() as client:
        return facts_of(model, server, client)


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_each_server_is_understood(dialect: Dialect) -> None:
    """Whoever compares texts of two versions has to see that they are two."""
    with dialect.server() as fake:
        assert told_by(fake, dialect.base) == dialect.of_base
        assert told_by(fake, dialect.adapter) == dialect.of_adapter
        assert fake.traffic.asked == []


@pytest.mark.parametrize(
    "pages",
    [
        {},
        {"/version": {"version": 33}},
        {"/version": {"version": ""}},
        {"/version": {"version": "3" * 501}},
        {"/v1/models": {"data": "none"}, "/info": {"router": ["a", "b"]}},
        {"/v1/models": {"data": [{"id": BASE, "owned_by": "a person"}]}},
    ],
)
def test_a_server_that_says_nothing_of_use_is_no_error(pages: dict[str, Json]) -> None:
    """Most have nothing to say, and others mean something else by the same path."""
    with FakeOpenAI() as fake:
        fake.traffic.tells = pages

        assert told_by(fake) is None
    assert told_by(fake) is None  # nor is one that is not there: whoever sends says so


@pytest.mark.parametrize("more", [{"root": ""}, {"owned_by": 7}, {"parent": [BASE]}])
def test_a_server_lists_its_models_whatever_else_it_says_of_them(more: dict[str, Json]) -> None:
    """A misspelt name is told before a run, and what else is told there is no standard's."""
    with FakeOpenAI() as fake:
        fake.traffic.tells = {"/v1/models": {"data": [{"id": BASE, **more}]}}
        server = Endpoint(fake.url, "entrant", None)

        assert doubt(server, [BASE]) is None
        assert doubt(server, ["other"]) == f"{fake.url} does not list other"


def test_a_key_that_a_server_repeats_is_not_recorded() -> None:
    """A ledger is handed on."""
    with FakeOpenAI() as fake:
        server = Endpoint(fake.url, "entrant", "sk-of-nobody-else-1234")
        fake.traffic.tells = {"/version": {"version": "1.0 for sk-of-nobody-else-1234"}}
        with server.client() as client:
            facts = facts_of(BASE, server, client)

    assert facts == ServerFacts(version=redacted("1.0 for sk-of-nobody-else-1234"))
    assert "nobody" not in str(facts)


def test_it_is_recorded_once_a_command(recorder: Recorder) -> None:
    """The same words a thousand times would fill the ledger."""
    dialect = DIALECTS["vllm"]
    models = {"base": dialect.base, "adapter": dialect.adapter}
    asked = [
        entrant(name, loader="endpoint", weights=model, dtype=None)
        for name, model in models.items()
    ]
    prompts = [prompt(f"p{n}") for n in range(3)]
    recorder.record(open_tournament(opened(prompts=prompts, entrants=asked)))

    with dialect.server() as fake:
        served = {EntrantId(name): Endpoint(fake.url, name, None) for name in models}
        generator = EndpointGenerator(responder_of(served), unlimited(recorder))
        for n_more in (4, 2):  # as an evaluation does, chunk by chunk
            generate_missing(
                recorder,
                lambda: generator,
                [each.prompt_id for each in prompts],
                on_progress=no_progress,
                limit=n_more,
            )
    submitted = [
        each.event for each in recorder.ledger.read() if isinstance(each.event, RequestsSubmitted)
    ]
    first = [dialect.of_base, dialect.of_adapter]
    assert [each.server for each in submitted if each.server] == first
    assert len(submitted) == len(prompts) * len(models)
