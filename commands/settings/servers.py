"""The servers at which judges and endpoint entrants are asked, as the settings name them."""

import re
from collections.abc import Callable, Iterable, Iterator
from ipaddress import ip_address
from typing import Final, NamedTuple, TypeAlias

from commands.settings.makers import key_variables
from commands.settings.schema import JudgeSection, Settings
from commands.settings.sections import EndpointSection
from ledger.events.registration import BATCHED

OPENAI_URL: Final = "https://api.openai.com/v1"
"""The address of OpenAI's API, where settings name no other."""
_JURY: Final = "[[jury]]"
_ENTRANTS: Final = "[[entrants]]"


_HOST: Final = re.compile(r"https?://(?:\[([^\]]*)\]|([^/:]*))")
_OWN_DOMAINS: Final = (".localhost", ".local", ".internal", ".lan", ".home.arpa")


def is_on_own_network(base_url: str | None) -> bool:
    """Say whether a server is on this machine or its network by its address: nobody bills it."""
    if base_url is None or (found := _HOST.match(base_url)) is None:
        return False
    host = found[1] or found[2]
    try:
        return ip_address(host).is_private
    except ValueError:
        return "." not in host or host.lower().endswith(_OWN_DOMAINS)


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


def servers_of(settings: Settings) -> tuple[Server, ...]:
    """Return the servers of the judge, the jury and the entrants, in this order."""
    judges = map(server_of_judge, (settings.judge, *settings.jury))
    return (*filter(None, judges), *entrant_servers(settings.entrants))


def server_of_judge(section: JudgeSection, models: Iterable[str] | None = None) -> Server | None:
    """Return the server at which a judge is asked; None: it is on this machine.

    Args:
        section: The judge's section.
        models: The models asked there; None: its model, and that of the pilot.
    """
    company = BATCHED.get(section.provider, section.provider)
    if company not in {"anthropic", "endpoint"}:
        return None
    own = (section.model, section.pilot_model)
    return Server(
        "[judge]" if section.id is None else f"{_JURY} {section.id!r}",
        is_anthropic=company == "anthropic",
        models=tuple(dict.fromkeys(filter(None, own if models is None else models))),
        base_url=section.base_url,
        api_key_env=section.api_key_env,
        keys=key_variables(section.provider, section.api_key_env, section.base_url),
    )


def entrant_servers(entrants: Iterable[object]) -> Iterator[Server]:
    """Yield the server of each entrant that is behind one."""
    for entrant in entrants:
        if isinstance(entrant, EndpointSection):
            asked = f"{_ENTRANTS} {entrant.id!r}"
            url, variable = entrant.base_url, entrant.api_key_env
            yield Server(
                asked,
                entrant.is_anthropic,
                (entrant.model,),
                url,
                variable,
                key_variables("endpoint", variable, url),
            )
