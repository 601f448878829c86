"""Judge by a server that speaks OpenAI's chat completions, as vLLM and SGLang do."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import openai
from openai.types.shared_params import ResponseFormatJSONSchema

from commands.backends.abreast import abreast
from commands.backends.endpoint_reply import reply_of
from commands.backends.faults import gist
from commands.errors import ConfigurationError, NoCredentials, ProviderError
from commands.ports import Answer, NoReply
from ledger.events.registration import JudgeSettings
from ledger.identity import Digest
from projections.judge_query import VERDICT_SCHEMA, JudgeQuery

KEY_VARIABLE: Final = "OPENAI_API_KEY"
NO_KEY: Final = "none"  # the client wants one, and a server that needs none takes any

_FINAL: Final = frozenset({400, 413, 422})  # the query itself is refused, and would be again
_VERDICT_FORMAT: Final = ResponseFormatJSONSchema(
    type="json_schema",
    json_schema={"name": "verdict", "strict": True, "schema": dict(VERDICT_SCHEMA)},
)


class EndpointJudge:
    """Asks several queries at a time, each by a request of its own."""

    def __init__(
        self,
        judge: JudgeSettings,
        *,
        base_url: str,
        api_key: str,
        n_at_a_time: int,
        max_retries: int = 2,
        timeout_s: float = 600.0,
    ) -> None:
        """Make a client of the server; nothing is sent yet.

        Args:
            judge: The model's name there, and what determines its replies.
            base_url: Where the server is, as http://localhost:8000/v1.
            api_key: NO_KEY where the server needs none.
            n_at_a_time: Requests at a time.
            max_retries: Of a request that got no answer, a 429, or an error of the server's.
            timeout_s: For each part of an answer.
        """
        self._model, self._base_url = judge.model, base_url
        self._max_tokens = int(dict(judge.parameters)["max_tokens"])
        self._format: ResponseFormatJSONSchema | openai.Omit
        self._format = _VERDICT_FORMAT if judge.protocol == "schema" else openai.omit
        self._n_at_a_time = n_at_a_time
        self._client = openai.OpenAI(
            base_url=base_url, api_key=api_key, max_retries=max_retries, timeout=timeout_s
        )

    def answer(self, queries: Sequence[JudgeQuery]) -> Iterator[Answer]:
        """Yield answers as they come; those under way at a fault come before it.

        Raises:
            NoCredentials: The server wants a key, or another.
            ConfigurationError: The server does not serve the model.
            ProviderError: The server cannot be reached, or is none of its kind.
        """
        return abreast(queries, self._answer, n_at_a_time=self._n_at_a_time)

    def _answer(self, query: JudgeQuery) -> Answer:
        try:
            return reply_of(query.query_key, self._sent(query))
        except msgspec.DecodeError as error:
            raise self._stranger(gist(error)) from error
        except openai.APITimeoutError:
            return NoReply(query.query_key, "errored", "the server took too long to answer")
        except openai.APIConnectionError as error:
            raise self._silence(error) from error
        except openai.APIStatusError as error:
            return self._refusal(query.query_key, error)

    def _sent(self, query: JudgeQuery) -> bytes:
        response = self._client.chat.completions.with_raw_response.create(
            model=self._model,
            messages=[
                {"role": "system", "content": query.system},
                {"role": "user", "content": query.user},
            ],
            max_tokens=self._max_tokens,
            temperature=0.0,
            response_format=self._format,
        )
        return response.content

    def _refusal(self, query_key: Digest, error: openai.APIStatusError) -> NoReply:
        detail = _said(error)
        match error:
            case openai.AuthenticationError() | openai.PermissionDeniedError():
                why = f"{self._base_url} refuses the key with HTTP {error.status_code}"
                raise NoCredentials(why, KEY_VARIABLE) from None  # it may quote the key
            case openai.NotFoundError():
                raise ConfigurationError([self._not_served(detail)]) from error
            case openai.InternalServerError():  # for this query, perhaps; others may fare better
                return NoReply(query_key, "errored", detail)
            case _ if error.status_code in _FINAL:
                return NoReply(query_key, "rejected", detail)
            case _:
                raise ProviderError(f"{self._base_url} answers {detail}") from error

    def _not_served(self, detail: str) -> str:
        return (
            f"judge {self._model!r} is not at {self._base_url} ({detail}); correct the model's"
            f" name or base_url, which often ends in /v1"
        )

    def _silence(self, error: openai.APIConnectionError) -> ProviderError:
        cause = gist(error.__cause__) if isinstance(error.__cause__, Exception) else gist(error)
        return ProviderError(
            f"no answer from {self._base_url} ({cause}); start the server or correct base_url"
        )

    def _stranger(self, why: str) -> ProviderError:
        return ProviderError(
            f"{self._base_url} does not answer as OpenAI's chat completions do ({why});"
            " correct base_url"
        )


def _said(error: openai.APIStatusError) -> str:
    """Return what a server said in words; vLLM and SGLang put it in different places."""
    words = error.body.get("message") if isinstance(error.body, dict) else None
    return f"HTTP {error.status_code}: {words or gist(error)}"
