"""Estimate the tokens of judge queries before they are sent, from recorded replies.

Tokens are proportional to bytes; each dimension has its own ratio, output and cached prefix.
Without recorded replies the provider's own counts are used, else a ratio that was not measured;
whoever shows the estimate says which.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

from ledger.events.judging import MAY_CHANGE, FailureReason, JudgeQueryFailed
from ledger.events.money import Usage
from ledger.events.registration import JudgeSettings
from ledger.identity import Digest
from projections.tournament.matches import complete_matches
from projections.tournament.state import Tournament
from projections.verdicts.queries import JudgeQuery

BYTES_PER_TOKEN: Final = 3.0  # of English under recent tokenizers, roughly; not measured
UNMEASURED_OUTPUT: Final = 400  # tokens of a reply with little thinking; not measured
FRAME_TOKENS: Final = 2_000
"""More than a provider adds to a request's text: role marks, the verdict's schema, and what it
tells the model of that schema."""

Basis: TypeAlias = Literal["replies", "another judge", "counts", "nothing"]


class AskedQuery(NamedTuple):
    """A query that a judge replied to, and the tokens it used."""

    query: JudgeQuery
    usage: Usage
    in_batch: bool
    failure: FailureReason | None = None


class CountedQuery(NamedTuple):
    """A query whose prompt the provider counted without answering it."""

    query: JudgeQuery
    n_input: int


Sent = TypeVar("Sent", AskedQuery, CountedQuery)


class ExpectedTokens(NamedTuple):
    """The expected tokens of one attempt at a query."""

    n_input: int  # tokens of the whole prompt
    n_output: int
    n_prefix: int  # of the prompt's: what is the same for every query of the dimension


class TokenRates(NamedTuple):
    """Tokens per byte, and per verdict."""

    tokens_per_byte: float
    n_output: float
    n_prefix: float | None = None  # None: no reply had a cached prefix


@dataclass(frozen=True)
class TokenModel:
    """An estimator of tokens, and the data it is based on."""

    basis: Basis
    overall: TokenRates
    by_system: Mapping[str, TokenRates]
    share_asked_again: float = 0.0  # of replies, those whose verdict could not be read
    hits_directly: float | None = None  # share of prefixes that were found in the cache
    hits_in_batches: float | None = None
    max_tokens: int | None = None  # of a reply: the judge's own limit, if it has one

    def expected(self, query: JudgeQuery) -> ExpectedTokens:
        """Return the expected tokens of one attempt at a query."""
        rates = self.by_system.get(query.system, self.overall)
        n_prefix = rates.n_prefix
        if n_prefix is None:
            n_prefix = n_bytes(query.system) * rates.tokens_per_byte
        n_input = round(n_bytes_of(query) * rates.tokens_per_byte)
        n_output = round(rates.n_output * query.n_verdicts)
        if self.max_tokens is not None:
            n_output = min(n_output, self.max_tokens)
        return ExpectedTokens(n_input, n_output, min(round(n_prefix), n_input))

    def hit_share(self, *, in_batch: bool) -> float | None:
        """Return the share of prefixes found in the cache; None if no reply tells."""
        return self.hits_in_batches if in_batch else self.hits_directly

    def n_askings(self, retries: int) -> float:
        """Return the expected number of paid attempts at a query."""
        return sum(self.share_asked_again**n for n in range(retries + 1))


UNMEASURED: Final = TokenModel("nothing", TokenRates(1 / BYTES_PER_TOKEN, UNMEASURED_OUTPUT), {})


def n_bytes(text: str) -> int:
    """Return a text's length in UTF-8."""
    return len(text.encode())


def n_bytes_of(query: JudgeQuery) -> int:
    """Return the length of a query's texts in UTF-8."""
    return n_bytes(query.system) + n_bytes(query.user)


def n_input_at_most(query: JudgeQuery, judge: JudgeSettings) -> int:
    """Return an upper bound on a prompt's tokens: a token has at least one byte.

    What a judge's settings add to the request may become tokens, too.
    """
    further = str(dict(judge.parameters).get("extra_body", ""))
    return n_bytes_of(query) + n_bytes(further) + FRAME_TOKENS


def may_have_used(usage: Usage, n_input: int | None, n_output: int | None) -> bool:
    """Return whether a request can have used the tokens that a server reports.

    Args:
        usage: What is reported.
        n_input: Upper bound on the prompt's tokens, as of `n_input_at_most`; None: none is known.
        n_output: Likewise on the answer's.
    """
    is_too_long = n_input is not None and usage.n_prompt > n_input
    return not is_too_long and (n_output is None or usage.n_output <= n_output)


def token_model(
    state: Tournament,
    judge: JudgeSettings,
    counted: Sequence[CountedQuery] = (),
    scored: Sequence[JudgeQuery] = (),
) -> TokenModel:
    """Return the best available estimator for a judge.

    Args:
        state: The tournament, with the replies that it received.
        judge: The judge that is asked.
        counted: The provider's counts of a few queries, if it was asked for them.
        scored: Queries about answers of evaluations, some of which may have replies.
    """
    return replace(_best_model(state, judge, counted, scored), max_tokens=judge.max_tokens)


def _best_model(
    state: Tournament,
    judge: JudgeSettings,
    counted: Sequence[CountedQuery],
    scored: Sequence[JudgeQuery],
) -> TokenModel:
    samples = asked_queries(state, judge, scored)
    if samples:
        return model_of_replies(samples, "replies")
    if counted:
        return model_of_counts(counted)
    alike = [
        other
        for other in state.panel
        if other.digest != judge.digest and other.company == judge.company
    ]
    others = [sample for other in alike for sample in asked_queries(state, other)]
    return model_of_replies(others, "another judge") if others else UNMEASURED


def asked_queries(
    state: Tournament, judge: JudgeSettings, scored: Sequence[JudgeQuery] = ()
) -> tuple[AskedQuery, ...]:
    """Return the tournament's queries that a judge replied to, with the tokens they used."""
    used = [(reply, reply.usage) for reply in state.replies if reply.usage is not None]
    if not used:
        return ()
    in_batches = frozenset(key for batch in state.batches.values() for key in batch.planned.queries)
    asked = {query.query_key: query for query in (*_questions(state, judge), *scored)}
    alone = (
        AskedQuery(
            asked[reply.query_key],
            usage,
            in_batch=reply.query_key in in_batches,
            failure=reply.reason if isinstance(reply, JudgeQueryFailed) else None,
        )
        for reply, usage in used
        if reply.query_key in asked
    )
    usages = {reply.query_key: usage for reply, usage in used}
    return (*alone, *_asked_together(state, asked, usages, in_batches))


def _asked_together(
    state: Tournament,
    asked: Mapping[Digest, JudgeQuery],
    usages: Mapping[Digest, Usage],
    in_batches: Collection[Digest],
) -> Iterator[AskedQuery]:
    """Yield requests for several verdicts, which share the tokens; none that was sent again."""
    for request, queries in state.together.items():
        keys = queries.values()
        if request not in asked or any(state.attempts[key] > 1 for key in keys):
            continue
        if shares := [usages[key] for key in keys if key in usages]:
            failures = (state.query_failures.get(key) for key in keys)
            reason = next((failure.reason for failure in failures if failure), None)
            usage = sum(shares[1:], shares[0])
            yield AskedQuery(asked[request], usage, request in in_batches, reason)


def _questions(state: Tournament, judge: JudgeSettings) -> Iterable[JudgeQuery]:
    bank = frozenset(prompt.prompt_id for prompt in state.bank)
    for match in complete_matches(state, bank, judge):
        yield match.forward
        yield match.swapped


def model_of_replies(samples: Sequence[AskedQuery], basis: Basis) -> TokenModel:
    """Fit the estimator to at least one reply."""
    n_again = sum(sample.failure in MAY_CHANGE for sample in samples)
    return TokenModel(
        basis,
        overall=_rates(samples)._replace(n_prefix=None),
        by_system={system: _rates(group) for system, group in _by_system(samples).items()},
        share_asked_again=n_again / len(samples),
        hits_directly=_hit_share(sample for sample in samples if not sample.in_batch),
        hits_in_batches=_hit_share(sample for sample in samples if sample.in_batch),
    )


def model_of_counts(counted: Sequence[CountedQuery]) -> TokenModel:
    """Fit the estimator to the provider's counts; the tokens of replies are not known."""
    return TokenModel(
        "counts",
        overall=_rates_of_counts(counted),
        by_system={
            system: _rates_of_counts(group) for system, group in _by_system(counted).items()
        },
    )


def _by_system(queries: Iterable[Sent]) -> dict[str, list[Sent]]:
    """Group queries by dimension: those of one share their system text."""
    groups: defaultdict[str, list[Sent]] = defaultdict(list)
    for query in queries:
        groups[query.query.system].append(query)
    return groups


def _rates_of_counts(counted: Sequence[CountedQuery]) -> TokenRates:
    return TokenRates(_per_byte(counted), UNMEASURED_OUTPUT)


def _rates(samples: Sequence[AskedQuery]) -> TokenRates:
    cached = [sample.usage.n_cached for sample in samples if sample.usage.n_cached]
    return TokenRates(
        _per_byte([CountedQuery(sample.query, sample.usage.n_prompt) for sample in samples]),
        fmean(sample.usage.n_output / sample.query.n_verdicts for sample in samples),
        fmean(cached) if cached else None,
    )


def _per_byte(counted: Sequence[CountedQuery]) -> float:
    return sum(query.n_input for query in counted) / sum(
        n_bytes_of(query.query) for query in counted
    )


def _hit_share(samples: Iterable[AskedQuery]) -> float | None:
    hits = [sample.usage.n_cache_read > 0 for sample in samples if sample.usage.n_cached]
    return fmean(hits) if hits else None
