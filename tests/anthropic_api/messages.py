"""A Message for a request: the reply of the model, cut and spoilt as it must be, and its usage."""

import hashlib
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from tests.anthropic_api.answers import Answering, Asked, Reply
from tests.anthropic_api.faults import Outcome
from tests.anthropic_api.models import THINKING_TOKENS, Model
from tests.anthropic_api.prompt import Json, head_of, n_tokens_of, schema_of, share_of, texts_of
from tests.anthropic_api.usage import PromptCache, Usage

_UNREADABLE: Final = "Both have their merits, and I would rather not say more."
_OUTCOMES: Final[dict[str, Outcome]] = {"refusal": "refused", "max_tokens": "truncated"}


class Answered(NamedTuple):
    """A message, what became of the request, and what it used."""

    message: Json
    outcome: Outcome
    usage: Usage


class _Written(NamedTuple):
    text: str
    stop_reason: str
    n_tokens: int
    n_thinking: int


class Assistant:
    """Answers requests, and knows what was cached."""

    def __init__(self, answering: Answering, *, batch_hit_rate: float) -> None:
        self._answering = answering
        self._batch_hit_rate = batch_hit_rate
        self._cache = PromptCache()

    def answer(
        self,
        params: Json,
        model: Model,
        *,
        message_id: str,
        now: datetime,
        spoiling: Outcome = "succeeded",
        in_batch: str | None = None,
    ) -> Answered:
        """Return the message that answers a request.

        Args:
            params: which were checked.
            model: that they name.
            message_id: of the message.
            now: what was cached is there for a while.
            spoiling: "refused", "truncated" or "unreadable", where the reply is to be so.
            in_batch: the custom_id of a request of a batch, where caching is best effort.
        """
        may_hit = in_batch is None or share_of("cache", in_batch) < self._batch_hit_rate
        cached = self._cache.read_and_write(params, model, now=now, may_hit=may_hit)
        reply = _spoilt(self._answering(_asked(params)), spoiling)
        written = _written(reply, params, model, is_truncated=spoiling == "truncated")
        usage = cached + Usage(n_output=written.n_tokens, n_thinking=written.n_thinking)
        tier = "standard" if in_batch is None else "batch"
        message = _message(written, message_id, model, usage.as_json(tier))
        is_unreadable = spoiling == "unreadable" and written.stop_reason == "end_turn"
        well: Outcome = "unreadable" if is_unreadable else "succeeded"
        return Answered(message, _OUTCOMES.get(written.stop_reason, well), usage)


def _asked(params: Json) -> Asked:
    model, system = str(params["model"]), texts_of(params, "system")
    return Asked(model, system, texts_of(params, "user"), schema_of(params))


def _spoilt(reply: Reply, spoiling: Outcome) -> Reply:
    match spoiling:
        case "refused":
            return Reply("", "refusal")
        case "unreadable":
            return Reply(_UNREADABLE)
        case _:
            return reply


def _written(reply: Reply, params: Json, model: Model, *, is_truncated: bool) -> _Written:
    """Return what is written before max_tokens is reached; thinking comes first, and counts."""
    n_wanted, n_thought = n_tokens_of(reply.text), _n_thinking(params, model)
    n_allowed = int(str(params["max_tokens"]))
    if reply.stop_reason == "refusal":
        return _Written(reply.text, "refusal", n_wanted + 1, 0)
    if is_truncated or reply.stop_reason == "max_tokens":
        n_thought = max(0, n_allowed - n_wanted // 2)
    if n_thought + n_wanted <= n_allowed:
        return _Written(reply.text, reply.stop_reason, n_thought + n_wanted, n_thought)
    text = head_of(reply.text, max(0, n_allowed - n_thought))
    return _Written(text, "max_tokens", n_allowed, min(n_thought, n_allowed))


def _n_thinking(params: Json, model: Model) -> int:
    match params:
        case {"thinking": {"type": "enabled" | "adaptive"}}:
            pass
        case _ if not model.always_thinks:
            return 0
    match params:
        case {"output_config": {"effort": str(effort)}}:
            return THINKING_TOKENS[effort]
        case _:
            return THINKING_TOKENS[model.default_effort]


def _message(written: _Written, message_id: str, model: Model, usage: Json) -> Json:
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": model.model_id,
        "content": _content(written),
        "stop_reason": written.stop_reason,
        "stop_sequence": None,
        "stop_details": _stop_details(written),
        "usage": usage,
    }


def _content(written: _Written) -> list[Json]:
    signature = hashlib.sha256(msgspec.json.encode(written.text)).hexdigest()
    thinking: Json = {"type": "thinking", "thinking": "", "signature": signature}
    text: Json = {"type": "text", "text": written.text, "citations": None}
    return [thinking] * (written.n_thinking > 0) + [text] * bool(written.text)


def _stop_details(written: _Written) -> Json | None:
    if written.stop_reason != "refusal":
        return None
    return {"type": "refusal", "category": None, "explanation": None}
