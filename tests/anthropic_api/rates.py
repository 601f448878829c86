"""Requests a minute: the headers that tell how many are left, and the refusal when none is."""

from collections.abc import Callable
from datetime import datetime, timedelta

from tests.anthropic_api.errors import ApiError

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
