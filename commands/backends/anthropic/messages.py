"""One request to Anthropic's Messages API, and what became of it: of a judge, or of an entrant."""

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

import httpx2
import msgspec
from anthropic import Anthropic, APIError
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

from commands.backends.anthropic import client as api
from commands.backends.remote.bodies import TIMEOUT_S
from commands.backends.remote.outcomes import REJECTED, failed
from commands.errors import ConfigurationError, ProviderError
from commands.ports import Host, NoReply
from ledger.identity import Digest

_OF_THE_PROMPT: Final = re.compile(r"prompt is too long|content blocks? must be non-empty")
_Read = TypeVar("_Read")


class AnthropicMessages:
    """Sends requests of one judge or entrant, each once."""

    def __init__(
        self,
        client: Anthropic,
        asked: str,
        *,
        n_at_a_time: int,
        remedies: Mapping[str, str],
    ) -> None:
        """Take the client, and in whose name it is asked.

        Args:
            client: The SDK's.
            asked: The judge or entrant, as messages name it.
            n_at_a_time: Requests under way, at most.
            remedies: What to do if the API does not take a parameter, by the word for it.
        """
        self.host = Host(f"Anthropic, asked as {asked},", n_at_a_time, TIMEOUT_S)
        self._client, self._asked, self._remedies = client, asked, remedies

    def send(
        self,
        key: Digest,
        params: MessageCreateParamsNonStreaming,
        read: Callable[[bytes, httpx2.Headers], _Read],
        further: object = None,
    ) -> _Read | NoReply:
        """Send a request once, and return what is read in the answer, or why there is none.

        Args:
            key: What identifies the request.
            params: What is asked.
            read: Reads the body of a message; it raises `msgspec.DecodeError` of anything else.
            further: Further keys of the request.
        """
        ask = self._client.messages.with_raw_response
        try:
            response = ask.create(**params, extra_body=further)
            body = response.read()
        except APIError as error:
            return self._failure(key, error)
        try:
            return read(body, response.headers)
        except msgspec.DecodeError as error:
            if (within := api.error_within(body, response.http_response)) is not None:
                return self._failure(key, within)
            why = ProviderError(api.not_the_api(error))
            return failed(key, why, "perhaps billed", "stop", is_certain=False)

    def _failure(self, key: Digest, error: APIError) -> NoReply:
        failure = api.failure_of(error)
        detail, remedy = failure.detail, None
        if failure.status in REJECTED:
            remedy = next((self._remedies[word] for word in self._remedies if word in detail), None)
        fault = ConfigurationError([f"{self._asked}: {detail}; {remedy}"])
        return failure.of_request(
            key,
            why=ProviderError(detail),
            remedy=fault if remedy else None,
            is_of_request=_OF_THE_PROMPT.search(detail) is not None,
        )
