"""What servers with OpenAI's API say of themselves beside it, each in its own way.

They serve `BASE` from /models/70b, and on it an adapter from /lora/security. The shapes are those
of vLLM 0.33, SGLang 0.5.23, TGI 3.3 and Ray 2.60.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from ledger.events.requests import ServerFacts
from ledger.identity import digest_of_bytes
from tests.providers.openai import FakeOpenAI, Json, Said

BASE: Final = "large-70b"
_WEIGHTS: Final = "/models/70b"
_ADAPTER: Final = "/lora/security"
_TEMPLATE: Final = "{% for message in messages %}{{ message.content }}{% endfor %}"


@dataclass(frozen=True)
class Dialect:
    """A server: which names it answers to, what its paths say, and what of that is recorded."""

    base: str
    adapter: str
    tells: Mapping[str, Json]
    of_base: ServerFacts | None
    of_adapter: ServerFacts | None

    def server(self) -> FakeOpenAI:
        """Return a fake of it."""
        fake = FakeOpenAI(lambda body: Said(f"I am {body['model']}."))
        fake.traffic.models = frozenset({self.base, self.adapter})
        fake.traffic.tells = self.tells
        return fake


def _cards(owner: str, base: str, root: str) -> Json:
    """Return a list of models as vLLM and SGLang give it."""
    shared = {"object": "model", "created": 1_790_000_000, "owned_by": owner}
    return {
        "object": "list",
        "data": [
            {"id": base, "root": root, "parent": None, "max_model_len": 8192, **shared},
            {"id": "security", "root": _ADAPTER, "parent": base, "max_model_len": None, **shared},
        ],
    }


_VLLM: Final = ServerFacts(
    name="vllm", version="0.33.0", weights=_WEIGHTS, template=digest_of_bytes(_TEMPLATE.encode())
)
_SGLANG: Final = ServerFacts(
    name="sglang", version="0.5.23", weights=_WEIGHTS, revision="main", is_deterministic=True
)
_TGI: Final = ServerFacts(
    name="text-generation-router",
    version="3.3.6",
    weights="org/large-70b",
    revision="4847e87e5975a573a2a190399ca62cd266c899ad",
)


def _with_adapter(facts: ServerFacts) -> ServerFacts:
    return replace(facts, adapter=_ADAPTER)


def _ray_card(name: str) -> Json:
    metadata = {"model_id": name, "input_modality": "text", "max_request_context_length": None}
    return {
        "id": name,
        "object": "model",
        "owned_by": "organization-owner",
        "permission": [],
        "metadata": metadata,
    }


DIALECTS: Final[Mapping[str, Dialect]] = {
    "vllm": Dialect(
        base=BASE,
        adapter="security",
        tells={
            "/v1/models": _cards("vllm", BASE, _WEIGHTS),
            "/version": {"version": "0.33.0"},
            "/tokenizer_info": {"tokenizer_class": "T", "chat_template": _TEMPLATE},
        },
        of_base=_VLLM,
        of_adapter=_with_adapter(_VLLM),
    ),
    "sglang": Dialect(
        base=BASE,
        adapter=f"{BASE}:security",
        tells={
            "/v1/models": _cards("sglang", BASE, BASE),
            "/server_info": {
                "version": "0.5.23",
                "model_path": _WEIGHTS,
                "revision": "main",
                "chat_template": None,
                "api_key": "a secret of the server",
                "enable_deterministic_inference": True,
            },
        },
        of_base=_SGLANG,
        of_adapter=_with_adapter(_SGLANG),
    ),
    "tgi": Dialect(
        base="tgi",
        adapter="security",
        tells={
            "/v1/models": {
                "object": "list",
                "data": [{"id": "org/large-70b", "owned_by": "org/large-70b", "created": 0}],
            },
            "/info": {
                "router": "text-generation-router",
                "version": "3.3.6",
                "model_id": "org/large-70b",
                "model_sha": "4847e87e5975a573a2a190399ca62cd266c899ad",
                "max_input_tokens": 4096,
            },
        },
        of_base=_TGI,
        of_adapter=_TGI,
    ),
    "ray": Dialect(
        base=BASE,
        adapter=f"{BASE}:security",
        tells={
            "/v1/models": {
                "object": "list",
                "data": [_ray_card(BASE), _ray_card(f"{BASE}:security")],
            }
        },
        of_base=None,
        of_adapter=None,
    ),
}
