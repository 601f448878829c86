"""What the API says when it refuses: a status, a type, a message and at times a code."""

from collections.abc import Mapping
from typing import Final

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
