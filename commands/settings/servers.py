"""The servers at which judges and endpoint entrants are asked, as the settings name them."""

import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeAlias

from commands.settings.api_keys import key_variables
from ledger.events.registration import BATCHED

JUDGE: Final = "[judge]"
"""The table of the default judge."""
OPENAI_URL: Final = "https://api.openai.com/v1"
"""The address of OpenAI's API, where settings name no other."""
DEFAULT_MODEL: Final = "claude-opus-5-5"
"""The model that [judge] asks if it names none."""
BASE_URL: Final = r"^https?://[^@?#\s]+$"
"""A server's address; what might hold a password or key is rejected, for settings are recorded."""
_ADDRESS: Final = (
    "must be an address such as http://localhost:8000/v1, without a user name, password or query;"
    " export the key in the variable that 'api_key_env' names"
)
_JURY: Final = "[[jury]]"
_ENTRANTS: Final = "[[entrants]]"


class Server(NamedTuple):
    """A server, the models that are asked there, and the judge or entrant that they are."""

    asked: str  # the table that names it, such as [judge]
    is_anthropic: bool  # else it has OpenAI's API
    models: tuple[str, ...]
    base_url: str | None  # None: the provider's own
    api_key_env: str  # of a server with OpenAI's API
    keys: tuple[str, ...]  # variables of which one must hold a key; empty: none for certain

    @property
    def is_juror(self) -> bool:
        """Whether it is of the jury, which is asked only if it is named."""
        return self.asked.startswith(_JURY)

    @property
    def is_entrant(self) -> bool:
        """Whether an entrant is asked there, and no judge."""
        return self.asked.startswith(_ENTRANTS)


Reach: TypeAlias = Callable[[Server], str | None]
"""Asks a server, free of charge, whether it is there and takes the key; returns what is doubtful.

It raises `NoCredentials` for the key, and `ProviderError` for a server that cannot be reached.
"""


def not_an_address(found: object = "?") -> str:
    """Return what is wrong with a server's address; what might hold a key is not quoted."""
    return _ADDRESS if re.search(r"[@?#]", str(found)) else f"is {found!r}, but {_ADDRESS}"


def juror_table(judge_id: str) -> str:
    """Return the name of a juror's table."""
    return f"{_JURY} {judge_id!r}"


def entrant_table(entrant_id: str) -> str:
    """Return the name of an entrant's table."""
    return f"{_ENTRANTS} {entrant_id!r}"


def server_of(
    asked: str, provider: str, models: Iterable[str | None], base_url: str | None, api_key_env: str
) -> Server | None:
    """Return the server of a judge, by its provider; None: it is on this machine."""
    company = dict(BATCHED).get(provider, provider)
    if company not in {"anthropic", "endpoint"}:
        return None
    return Server(
        asked,
        is_anthropic=company == "anthropic",
        models=tuple(dict.fromkeys(model for model in models if model)),
        base_url=base_url,
        api_key_env=api_key_env,
        keys=key_variables(provider, api_key_env),
    )
