"""Strategies of the events of responses, and of the requests that they took."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec import UNSET

from ledger.events.judging import Fate
from ledger.events.requests import (
    Charge,
    ParameterRefused,
    RequestsSettled,
    RequestsSubmitted,
    ServerFacts,
)
from ledger.events.responses import Diagnostics, Followed, ResponseFailed, ResponseGenerated
from tests.support.strategies.values import (
    COUNTS,
    DOLLARS,
    FINITE,
    LABELS,
    ORDINALS,
    TEXTS,
    built,
    digests,
    tuples,
    usages,
)


def response_generated() -> SearchStrategy[ResponseGenerated]:
    """Return responses."""
    return built(
        ResponseGenerated,
        response_key=digests(),
        entrant_id=LABELS,
        prompt_id=LABELS,
        seed=st.integers(min_value=0, max_value=2**32 - 1),
        sample=COUNTS,
        n_prompt_tokens=st.none() | COUNTS,
        n_generated_tokens=COUNTS,
        elapsed_s=st.none() | st.floats(min_value=0, allow_infinity=False),
        p_correct=st.none() | st.floats(min_value=0, max_value=1),
        diagnostics=st.none() | diagnostics(),
        imported_from=st.none() | digests(),
        follows=st.just(UNSET) | built(Followed, answer=digests(), asked=digests()),
        reasoning=st.just(UNSET) | TEXTS,
        attention=st.just(UNSET) | TEXTS,
    )


def diagnostics() -> SearchStrategy[Diagnostics]:
    """Return how heads decided on a response; its lists need not be as long as each other."""
    counts = ("stability_radii", "resampled_at", "rejected_tokens", "validity_radii")
    floats = ("entropies", "stability_margins", "suppressions")
    return built(
        Diagnostics,
        draft_head_idx=COUNTS,
        **dict.fromkeys(counts, tuples(COUNTS)),
        **dict.fromkeys(floats, tuples(FINITE)),
    )


def response_failed() -> SearchStrategy[ResponseFailed]:
    """Return failures to respond."""
    return built(
        ResponseFailed,
        response_key=digests(),
        entrant_id=LABELS,
        prompt_id=LABELS,
        usage=st.none() | usages(),
    )


def requests_submitted() -> SearchStrategy[RequestsSubmitted]:
    """Return requests under way."""
    return built(
        RequestsSubmitted,
        number=ORDINALS,
        entrant=LABELS,
        requests=tuples(digests()),
        worst_usd=tuples(st.none() | DOLLARS),
        server=st.just(UNSET) | server_facts(),
    )


def server_facts() -> SearchStrategy[ServerFacts]:
    """Return what servers say of themselves."""
    words = dict.fromkeys(("name", "version", "weights", "revision", "adapter"), st.none() | TEXTS)
    return built(ServerFacts, **words, template=st.none() | digests())


def requests_settled() -> SearchStrategy[RequestsSettled]:
    """Return requests that ended."""
    fates: SearchStrategy[Fate] = st.sampled_from(
        ["not sent", "refused", "answered", "perhaps billed"]
    )
    charges = built(
        Charge,
        request=digests(),
        fate=fates,
        usage=st.none() | usages(),
        usd=st.none() | DOLLARS,
    )
    return built(RequestsSettled, number=ORDINALS, entrant=LABELS, charges=tuples(charges))


def parameter_refused() -> SearchStrategy[ParameterRefused]:
    """Return what a server was found not to take."""
    return built(ParameterRefused)
