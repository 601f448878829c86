"""How many tokens the provider counts in requests: for estimates, at no cost."""

from collections.abc import Mapping, Sequence

import msgspec
from anthropic import Anthropic

from commands.backends.anthropic_client import in_our_words, repeating
from commands.backends.anthropic_request import RequestForm
from commands.backends.json_body import decoded
from ledger.events.registration import JudgeSettings
from ledger.events.values import Count
from ledger.identity import Digest
from projections.verdicts.queries import JudgeQuery


class _Counted(msgspec.Struct, frozen=True):
    input_tokens: Count


class AnthropicTokens:
    """Counts the input of a judge's requests, cached or not."""

    def __init__(self, client: Anthropic, judge: JudgeSettings) -> None:
        self._messages = repeating(client).messages.with_raw_response
        self._form = RequestForm.of(judge, cache="off")

    def count(self, queries: Sequence[JudgeQuery]) -> Mapping[Digest, int]:
        """Return the input tokens of queries, by query key."""
        with in_our_words():
            return {query.query_key: self._n_tokens(query) for query in queries}

    def _n_tokens(self, query: JudgeQuery) -> int:
        body = self._messages.count_tokens(**self._form.counted(query)).read()
        return decoded(body, _Counted).input_tokens
