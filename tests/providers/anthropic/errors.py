"""What the API refuses, and in which words; see params.py for what a request may hold.

Sizes and patterns: platform.claude.com/docs/en/build-with-claude/batch-processing, by way of the
API documentation of autumn 2026. The wording is ours, save where an issue quotes the API's.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
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


@dataclass(frozen=True)
class Limits:
    """Sizes; a test may ask for smaller ones than the API's."""

    n_batch_bytes: int = 256_000_000
    n_message_bytes: int = 32_000_000
    n_requests_per_minute: int | None = None  # 1,000 at the lowest tier


class BatchRequest(msgspec.Struct, frozen=True, gc=False):
    """One request of a batch; its params are not read before the batch is processed."""

    custom_id: str
    params: msgspec.Raw


class _BatchBody(msgspec.Struct, frozen=True):
    requests: list[BatchRequest]


_BATCH_BODY: Final = msgspec.json.Decoder(_BatchBody)  # made before any thread, see decode_json


def batch_requests(body: bytes) -> list[BatchRequest]:
    """Return the requests of a new batch.

    Raises:
        ApiError: none, or one without an id that fits and is its own (400).
    """
    try:
        requests = _BATCH_BODY.decode(body).requests
    except msgspec.DecodeError as error:
        raise invalid(f"requests: {error}") from error
    if not requests:
        raise invalid("requests: List should have at least 1 item after validation, not 0")
    _check_ids(requests)
    return requests


def _check_ids(requests: list[BatchRequest]) -> None:
    seen = set[str]()
    for place, request in enumerate(requests):
        where = f"requests.{place}"
        if not _CUSTOM_ID.fullmatch(request.custom_id):
            pattern = "^[a-zA-Z0-9_-]{1,64}$"
            raise invalid(f"{where}.custom_id: String should match pattern '{pattern}'")
        if request.custom_id in seen:
            raise invalid(f"{where}.custom_id: {request.custom_id!r} is not unique in the batch")
        if bytes(memoryview(request.params)[:1]) != b"{":
            raise invalid(f"{where}.params: Input should be an object")
        seen.add(request.custom_id)


_TOLD_LIMIT = 4_000  # told where none is enforced: that of the highest tier
_TOLD_TOKENS = 10_000_000
_MINUTE = timedelta(minutes=1)


class Rates:
    """Counts requests in windows of a minute."""

    def __init__(self, n_per_minute: int | None, *, now: Callable[[], datetime]) -> None:
        self._enforced = n_per_minute
        self._now = now
        self._resets_at = now() + _MINUTE
        self._n_used = 0

    def count(self) -> None:
        """Count a request.

        Raises:
            ApiError: none is left in this minute (429), with the seconds to wait.
        """
        now = self._now()
        if now >= self._resets_at:
            self._resets_at, self._n_used = now + _MINUTE, 0
        self._n_used += 1
        if self._enforced is not None and self._n_used > self._enforced:
            wait_s = str(1 + int((self._resets_at - now).total_seconds()))
            message = f"This request would exceed {self._enforced} requests per minute"
            raise ApiError("rate_limit_error", message, headers={"retry-after": wait_s})

    @property
    def headers(self) -> dict[str, str]:
        """What every answer tells of the limits."""
        limit = _TOLD_LIMIT if self._enforced is None else self._enforced
        resets_at = self._resets_at.strftime("%Y-%m-%dT%H:%M:%SZ")
        told: dict[str, str] = {}
        for name, most, left in (
            ("requests", limit, max(0, limit - self._n_used)),
            ("input-tokens", _TOLD_TOKENS, _TOLD_TOKENS),
            ("output-tokens", _TOLD_TOKENS, _TOLD_TOKENS),
            ("tokens", 2 * _TOLD_TOKENS, 2 * _TOLD_TOKENS),
        ):
            told[f"anthropic-ratelimit-{name}-limit"] = str(most)
            told[f"anthropic-ratelimit-{name}-remaining"] = str(left)
            told[f"anthropic-ratelimit-{name}-reset"] = resets_at
        return told
