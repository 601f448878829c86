"""What an entrant's server says of itself and of a model, asked free of charge.

There is no standard for it. All list their models; vLLM says its version at /version, SGLang at
/server_info, TGI at /info, each beside the API; and vLLM gives its chat template at
/tokenizer_info, if it was started so. What a server does not answer is not known, and no error.
"""

import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Annotated, Final, TypeVar

import httpx2
import msgspec
import openai

from commands.backends.endpoint.server import Endpoint
from commands.backends.remote.bodies import CONNECT_S, decode_json, first_line
from commands.errors import NoCredentials
from ledger.events.requests import ServerFacts
from ledger.identity import digest_of_bytes

_Told = Annotated[str, msgspec.Meta(min_length=1, max_length=500)] | None
_NAMES: Final = frozenset({"vllm", "sglang"})  # others say there who owns the model
_PATHS: Final = ("/version", "/server_info", "/info", "/tokenizer_info")
_Answer = TypeVar("_Answer")
_log: Final = logging.getLogger(__name__)


class _Listed(msgspec.Struct, frozen=True):
    """A model, as every server lists it."""

    id: str


class _AllListed(msgspec.Struct, frozen=True):
    data: tuple[_Listed, ...]


class _Card(_Listed, frozen=True):
    """One as vLLM and SGLang list it; of an adapter `parent` is the model it stands on."""

    owned_by: str | None = None
    root: _Told = None
    parent: str | None = None


class _Cards(msgspec.Struct, frozen=True):
    data: tuple[_Card, ...]


class _About(msgspec.Struct, frozen=True):
    """What one path says."""

    version: _Told = None
    router: _Told = None  # TGI: the name of its software
    model_path: _Told = None  # SGLang
    model_id: _Told = None  # TGI
    revision: _Told = None  # SGLang
    model_sha: _Told = None  # TGI
    enable_deterministic_inference: bool | None = None  # SGLang
    chat_template: str | None = None  # SGLang: a name or a file; else the template


_LISTED: Final = msgspec.json.Decoder(_AllListed)
_CARDS: Final = msgspec.json.Decoder(_Cards)
_ABOUT: Final = msgspec.json.Decoder(_About)


def facts_of(model: str, server: Endpoint, client: openai.OpenAI) -> ServerFacts | None:
    """Return what is worth recording of a server and a model by that name; None: nothing."""
    root = server.base_url.rstrip("/").removesuffix("/v1")
    try:
        listed = _asked(client, "/models", _CARDS) or _Cards(())
        pages = [_asked(client, root + path, _ABOUT) or _About() for path in _PATHS]
    except openai.APIConnectionError as error:
        _log.debug("%s says nothing of itself: %s", server.base_url, first_line(error))
        return None
    version, server_info, info, tokenizer = pages
    card, adapter = _cards_of(model, {each.id: each for each in listed.data})
    template = tokenizer.chat_template
    facts = ServerFacts(
        name=info.router or (card.owned_by if card.owned_by in _NAMES else None),
        version=version.version or server_info.version or info.version,
        weights=server_info.model_path or info.model_id or card.root,
        revision=server_info.revision or info.model_sha,
        adapter=adapter,
        template=None if template is None else digest_of_bytes(template.encode()),
        is_deterministic=server_info.enable_deterministic_inference,
    )
    return None if facts == ServerFacts() else facts


def _cards_of(model: str, cards: Mapping[str, _Card]) -> tuple[_Card, str | None]:
    """Return the card of a model's weights, and where its adapter is, if it is one.

    SGLang lists an adapter by its own name, and is asked for it as "model:adapter".
    """
    card = cards.get(model) or cards.get(model.rpartition(":")[2]) or _Card(model)
    if card.parent is None:
        return card, None
    return cards.get(card.parent, _Card(card.parent, card.owned_by)), card.root


def _asked(
    client: openai.OpenAI, path: str, decoder: msgspec.json.Decoder[_Answer]
) -> _Answer | None:
    """Return what a path says; None: the server has no such path, or says something else."""
    with suppress(openai.APIStatusError):
        return _told(client, path, decoder)
    return None


def _told(
    client: openai.OpenAI, path: str, decoder: msgspec.json.Decoder[_Answer]
) -> _Answer | None:
    answer = client.get(path, cast_to=httpx2.Response, options={"timeout": CONNECT_S})
    with suppress(msgspec.DecodeError):
        return decode_json(answer.content, decoder)
    return None


def doubt(server: Endpoint, models: Iterable[str]) -> str | None:
    """Return which models a server does not list, asking it free of charge.

    Raises:
        NoCredentials: The server needs a key, or refuses it.
        ProviderError: The server cannot be reached.
    """
    try:
        with server.client() as client:
            listed = _told(client, "/models", _LISTED)
    except openai.APIConnectionError as error:
        raise server.unreachable(error) from None
    except openai.APIStatusError as error:
        fatal = server.failure_of(error).fatal
        if isinstance(fatal, NoCredentials):
            raise fatal from None  # the error quotes the key
        return None
    if listed is None:
        return None
    names = {entry.id.removeprefix("models/") for entry in listed.data}  # as Google's server does
    # SGLang lists an adapter by its own name, and is asked for it as "model:adapter".
    missing = [model for model in models if names.isdisjoint((model, model.rpartition(":")[2]))]
    return f"{server.base_url} does not list {', '.join(missing)}" if missing else None
