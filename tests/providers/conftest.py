"""A fake, and the real SDK as its client."""

from collections.abc import Iterator

import pytest
from anthropic import Anthropic

from tests.providers.anthropic.requests import client_of
from tests.providers.anthropic.server import FakeAnthropic


@pytest.fixture
def fake() -> Iterator[FakeAnthropic]:
    """Give a fake whose batches end at the second retrieval."""
    with FakeAnthropic() as fake:
        yield fake


@pytest.fixture(scope="module")
def sdk() -> Iterator[Anthropic]:
    """Give the SDK, which takes a tenth of a second to set up."""
    with client_of("http://127.0.0.1") as sdk:
        yield sdk


@pytest.fixture
def client(fake: FakeAnthropic, sdk: Anthropic) -> Anthropic:
    """Give the SDK, which does not send again by itself."""
    return sdk.with_options(base_url=fake.url)
