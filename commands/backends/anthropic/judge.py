"""A judge on Anthropic's Messages API, several queries at a time."""

from collections.abc import Iterator, Sequence
from http import HTTPStatus
from threading import Event
from typing import Final

from anthropic import Anthropic, APIError, APIStatusError

from commands.backends._remote import REJECTED, Stopped, run_concurrently
from commands.backends.anthropic import client as api
from commands.backends.anthropic._replies import answer_of
from commands.backends.anthropic.requests import RequestForm
from commands.ports import Answer, NoReply
from commands.settings.schema import CacheTtl
from ledger.events.registration import JudgeSettings
from projections.tournament.spend import MAY_BE_BILLED
from projections.verdicts.queries import JudgeQuery

_TIMED_OUT: Final = HTTPStatus.REQUEST_TIMEOUT


class AnthropicJudge:
    """Sends each query once, and again only if it certainly was not answered."""

    def __init__(
        self,
        client: Anthropic,
        judge: JudgeSettings,
        *,
        cache: CacheTtl,
        n_at_a_time: int,
        pace: api.Pace | None = None,
    ) -> None:
        self._client = client
        self._form = RequestForm(judge, cache=cache)
        self._n_at_a_time = n_at_a_time
        self._pace = pace or api.Pace()

    def answer(self, queries: Sequence[JudgeQuery]) -> Iterator[Answer]:
        """Yield answers as they come.

        After a failure, answers to queries already sent are still yielded before it is raised.
        Closing the iterator stops new queries and waits for none.

        Raises:
            NoCredentials: The provider refuses the key.
            SpendLimitReached: The provider's spend limit is reached.
            ProviderError: The provider cannot be reached, is too busy, lacks the model, or is
                another API.
        """
        stops = Event()
        return run_concurrently(
            queries,
            lambda query: self._answer(query, stops),
            n_at_a_time=self._n_at_a_time,
            stops=stops,
        )

    def _answer(self, query: JudgeQuery, stops: Event) -> Answer:
        try:
            body = api.send_with_retries(
                lambda: self._ask(query, stops), self._pace, retry_if=api.was_not_answered
            )
        except APIError as error:
            reason = _no_reply(query, error)
            if reason is None:
                raise api.provider_error(error) from api.without_key(error)
            return reason
        with api.translate_errors():
            return answer_of(query.query_key, body)

    def _ask(self, query: JudgeQuery, stops: Event) -> bytes:
        if stops.is_set():
            raise Stopped
        response = self._client.messages.with_raw_response.create(**self._form.params(query))
        self._pace.follow_limits(response.headers)
        return response.read()


def _no_reply(query: JudgeQuery, error: APIError) -> NoReply | None:
    """Return why this query has no answer; None if the others would fail as well."""
    if api.fatal_error(error) is not None or api.was_not_processed(error):
        return None
    status = error.status_code if isinstance(error, APIStatusError) else None
    if status in REJECTED:
        return NoReply(query.query_key, "rejected", api.describe_error(error))
    if api.was_not_answered(error):
        if api.wants_long_wait(error):  # which affects all
            return None
        return NoReply(query.query_key, "errored", api.describe_error(error))
    if status is None or status == _TIMED_OUT or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return NoReply(query.query_key, "errored", f"{api.describe_error(error)}; {MAY_BE_BILLED}")
    return None
