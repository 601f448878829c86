"""One request to Anthropic's Messages API, and what became of it: of a judge, or of an entrant."""

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, TypeVar

import httpx2
import msgspec
from anthropic import Anthropic, APIError
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

from commands.backends.anthropic import client as api
from commands.backends.remote.bodies import TIMEOUT_S
from commands.backends.remote.outcomes import REJECTED, failed, fate_of
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
        """Return what became of a request that failed."""
        detail, status = api.describe_error(error), api.status_of(error)
        if status is None and not api.may_have_arrived(error):
            return failed(key, ProviderError(detail), "not sent", "ask again")
        if status is None:
            return NoReply(key, "errored", detail, "perhaps billed")
        fate = fate_of(status, api.kinds_of(error))
        if api.is_busy(error) or status == HTTPStatus.SERVICE_UNAVAILABLE:
            asked_s = api.asked_wait_s(error)
            return failed(key, ProviderError(detail), fate, "wait", asked_s=asked_s)
        fatal = api.fatal_error(error)
        if fatal is not None and status != HTTPStatus.FORBIDDEN:
            return failed(key, fatal, fate, "stop")
        if status == HTTPStatus.NOT_FOUND or status < HTTPStatus.BAD_REQUEST:
            return failed(key, ProviderError(detail), fate, "stop")
        remedy = next((self._remedies[word] for word in self._remedies if word in detail), None)
        if status in REJECTED and remedy is not None:
            fault = f"{self._asked}: {detail}; {remedy}"
            return failed(key, ConfigurationError([fault]), fate, "stop")
        if status in REJECTED:
            is_certain = _OF_THE_PROMPT.search(detail) is not None
            return NoReply(key, "rejected", detail, fate, error=fatal, is_certain=is_certain)
        return NoReply(key, "errored", detail, fate)  # perhaps of this request only
