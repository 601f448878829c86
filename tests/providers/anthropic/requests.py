"""A client that sends each request once."""

import httpx2
from anthropic import Anthropic

from tests.support.patience import PATIENCE_S


def client_of(url: str) -> Anthropic:
    """Return the real SDK, which sends each request once."""
    timeout = httpx2.Timeout(PATIENCE_S)
    return Anthropic(base_url=url, api_key="test", max_retries=0, timeout=timeout)
