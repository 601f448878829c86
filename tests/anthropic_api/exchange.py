"""A request and its answer, apart from sockets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgspec

from tests.anthropic_api.errors import invalid, not_found
from tests.anthropic_api.faults import Endpoint, Fault
from tests.anthropic_api.prompt import Json


class Route(NamedTuple):
    """Which endpoint a request is for, and of what."""

    endpoint: Endpoint
    name: str = ""


@dataclass(frozen=True)
class Request:
    """A request as it came in; header names are in small letters."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def key(self) -> str:
        """The API key, or the token, or nothing."""
        token = self.headers.get("authorization", "").removeprefix("Bearer ")
        return self.headers.get("x-api-key") or token

    def json(self) -> Json:
        """Return the body.

        Raises:
            ApiError: it is no JSON object (400).
        """
        try:
            return msgspec.json.decode(self.body, type=Json)
        except msgspec.DecodeError as error:
            raise invalid(f"The request body is not valid JSON: {error}") from error

    def route(self) -> Route:
        """Return the endpoint.

        Raises:
            ApiError: there is none at the path (404).
        """
        match self.method, self.path.removeprefix("/").split("/"):
            case "POST", ["v1", "messages"]:
                return Route("messages")
            case "POST", ["v1", "messages", "count_tokens"]:
                return Route("count_tokens")
            case "GET", ["v1", "models", name]:
                return Route("models.retrieve", name)
            case method, ["v1", "messages", "batches", *rest]:
                return self._batch_route(method, rest)
            case _:
                raise not_found(f"Not found: {self.method} {self.path}")

    def _batch_route(self, method: str, rest: list[str]) -> Route:
        match method, rest:
            case "POST", []:
                return Route("batches.create")
            case "GET", []:
                return Route("batches.list")
            case "GET", [name]:
                return Route("batches.retrieve", name)
            case "DELETE", [name]:
                return Route("batches.delete", name)
            case "GET", [name, "results"]:
                return Route("batches.results", name)
            case "POST", [name, "cancel"]:
                return Route("batches.cancel", name)
            case _:
                raise not_found(f"Not found: {self.method} {self.path}")


@dataclass(frozen=True)
class Answer:
    """An answer: a body or a file of results, and what is to go wrong as it is sent."""

    status: int = 200
    body: bytes = b""
    results: Path | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    fault: Fault | None = None


def answer_of(value: object, *, status: int = 200) -> Answer:
    """Return an answer whose body is the JSON of a value."""
    return Answer(status, msgspec.json.encode(value), headers={"content-type": "application/json"})
