"""How the API shapes an error, and what it refuses of a batch before it reads the params.

Patterns: platform.claude.com/docs/en/build-with-claude/batch-processing, by way of the API
documentation of autumn 2026. The wording is ours, save where an issue quotes the API's.
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

STATUS_OF: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class ApiError(Exception):
    """An answer that is an error, as the API shapes it."""

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        error_code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message
        self.error_code = error_code
        self.headers = dict(headers or {})

    @property
    def status(self) -> int:
        """The HTTP status of an error of this kind."""
        return STATUS_OF[self.kind]

    def as_json(self, request_id: str | None = None) -> dict[str, object]:
        """Return the body, which is also what a batch's errored result holds."""
        error: dict[str, object] = {"type": self.kind, "message": self.message}
        if self.error_code is not None:
            error["details"] = {"error_code": self.error_code}
        return {"type": "error", "error": error, "request_id": request_id}


def invalid(message: str) -> ApiError:
    """Return the error of a request that must be changed before it is sent again."""
    return ApiError("invalid_request_error", message)


def not_found(message: str) -> ApiError:
    """Return the error of something that is not there, or no longer."""
    return ApiError("not_found_error", message)


VERSIONS: Final = ("2023-01-01", "2023-06-01", "2026-10-21")
_CUSTOM_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)


class BatchRequest(msgspec.Struct, frozen=True, gc=False):
    """One request of a batch; its params are not read before the batch is processed."""

    custom_id: str
    params: dict[str, object]


class _BatchBody(msgspec.Struct, frozen=True):
    requests: list[BatchRequest]


_BATCH_BODY: Final = msgspec.json.Decoder(_BatchBody)  # made before any thread, see decode_json


def batch_requests(body: bytes) -> list[BatchRequest]:
    """Return the requests of a new batch.

    Raises:
        ApiError: There is none, or one without an id that fits and is its own (400).
    """
    try:
        requests = _BATCH_BODY.decode(body).requests
    except msgspec.DecodeError as error:
        raise invalid(f"requests: {error}") from error
    if not requests:
        raise invalid("requests: List should have at least 1 item after validation, not 0")
    seen = set[str]()
    for place, request in enumerate(requests):
        where = f"requests.{place}.custom_id"
        if not _CUSTOM_ID.fullmatch(request.custom_id):
            raise invalid(f"{where}: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'")
        if request.custom_id in seen:
            raise invalid(f"{where}: {request.custom_id!r} is not unique in the batch")
        seen.add(request.custom_id)
    return requests
