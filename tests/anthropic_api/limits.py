"""What the API refuses of a batch as it comes in; see params.py for what each request holds.

Sizes and patterns: platform.claude.com/docs/en/build-with-claude/batch-processing, by way of
the API documentation of autumn 2026. The wording is ours, save where an issue quotes the API's.
"""

import re
from dataclasses import dataclass
from typing import Final

import msgspec

from tests.anthropic_api.errors import ApiError, invalid

VERSIONS: Final = ("2023-01-01", "2023-06-01", "2026-10-21")
_CUSTOM_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)


@dataclass(frozen=True)
class Limits:
    """Sizes; a test may ask for smaller ones than the API's."""

    n_batch_requests: int = 100_000
    n_batch_bytes: int = 256_000_000
    n_message_bytes: int = 32_000_000
    n_queued_requests: int | None = None  # 200,000 at the lowest tier
    n_requests_per_minute: int | None = None  # 1,000 at the lowest tier


class BatchRequest(msgspec.Struct, frozen=True, gc=False):
    """One request of a batch; its params are not read before the batch is processed."""

    custom_id: str
    params: msgspec.Raw


class _BatchBody(msgspec.Struct, frozen=True):
    requests: list[BatchRequest]


def batch_requests(body: bytes, limits: Limits) -> list[BatchRequest]:
    """Return the requests of a new batch.

    Raises:
        ApiError: too many (413), none, or one without an id that fits and is its own (400).
    """
    try:
        requests = msgspec.json.decode(body, type=_BatchBody).requests
    except msgspec.DecodeError as error:
        raise invalid(f"requests: {error}") from error
    if not requests:
        raise invalid("requests: List should have at least 1 item after validation, not 0")
    if len(requests) > limits.n_batch_requests:
        raise ApiError("request_too_large", f"requests: more than {limits.n_batch_requests} items")
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
