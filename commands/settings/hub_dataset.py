"""A bank on the Hugging Face Hub: `hf://datasets/org/name@revision?split=test&text=question`.

The query chooses a configuration and a split, and says which columns hold the fields of a prompt.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote

from msgspec.structs import fields
from pydantic_core import PydanticCustomError

from commands.settings.toml import nearest
from commands.settings.turns import FORMS
from ledger.events.registration import Prompt

_SCHEME: Final = "hf://"
_ADDRESS: Final = re.compile(
    r"hf://datasets/(?P<name>[\w.-]+(?:/[\w.-]+)?)(?:@(?P<revision>[^?\s]+))?(?:\?(?P<query>\S*))?",
    re.ASCII,
)
_COLUMNS: Final = frozenset(
    {field_info.name for field_info in fields(Prompt)} - {"tags"} | {*FORMS}
)
_EXAMPLE: Final = "hf://datasets/org/name?split=test"


class HubDataset(NamedTuple):
    """The rows of a data set that are a bank."""

    address: str
    name: str
    revision: str | None = None  # a branch, tag or commit; None: the main branch
    config: str | None = None
    split: str | None = None
    columns: Mapping[str, str] = {}  # by field of a prompt, where it is said; "": none has it


def hub_dataset(bank: str) -> HubDataset | None:
    """Return the data set that an address names; None: it is the path of a file.

    Raises:
        PydanticCustomError: The address is wrong.
    """
    if not bank.startswith(_SCHEME):
        return None
    found = _ADDRESS.fullmatch(bank)
    if found is None:
        raise _wrong(f"a data set of the Hub is written {_EXAMPLE}")
    query = parse_qsl(found["query"] or "", keep_blank_values=True)
    said = dict(query)
    known = sorted({"config", "split", *_COLUMNS})
    if unknown := [key for key in said if key not in known]:
        raise _wrong(f"the address has the unknown key {unknown[0]!r}{nearest(unknown[0], known)}")
    if len(said) < len(query):
        raise _wrong("the address has a key twice; keep one of them")
    config, split = said.pop("config", None), said.pop("split", None)
    revision = found["revision"] and unquote(found["revision"])
    return HubDataset(bank, found["name"], revision, config, split, said)


def _wrong(why: str) -> PydanticCustomError:
    return PydanticCustomError("bank", "{why}", {"why": why})
