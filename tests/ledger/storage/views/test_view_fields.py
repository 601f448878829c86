"""Views read fields that events have, in every version that was ever written.

SQL knows no upcast, and gives NULL for a field that is not there. So a field that an upcast touches
is read under its older name, too, or here is red.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec
import pytest
from msgspec import inspect

from ledger.events.registry import EVENTS, UPCASTS
from ledger.storage.schema import VIEWS
from ledger.storage.views.view import LedgerView
from tests.support.goldens.events import GOLDENS

BOOKKEEPING = {"redacted"}  # of a tombstone, which is no event's field
MENTION = re.compile(r"'\$\.([\w.]+)'")
COALESCED = re.compile(r"coalesce\(([^()]*)\)")


class Older(NamedTuple):
    """A payload of an older version, and the same in today's words."""

    type: str
    before: object
    today: object


def types_of(view: LedgerView) -> set[str]:
    """Return the types of the events that a view reads."""
    lists = re.findall(r"type IN \(([^)]*)\)", view.select)
    return {name.strip(" '") for each in lists for name in each.split(",")}


def is_named(path: str, named: Iterable[str]) -> bool:
    """Say whether a path is one of some, or the end of one: a view may read a part of an event."""
    return any(each == path or each.endswith(f".{path}") for each in named)


def declared(of: inspect.Type, beginning: str = "") -> Iterator[str]:
    """Yield the path of each field that a type declares, those of its parts, too."""
    match of:
        case inspect.StructType(fields=fields, tag_field=tag):
            if tag:
                yield f"{beginning}{tag}"
            for field in fields:
                yield f"{beginning}{field.encode_name}"
                yield from declared(field.type, f"{beginning}{field.encode_name}.")
        case inspect.UnionType(types=types):
            for each in types:
                yield from declared(each, beginning)
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            yield from declared(item, beginning)
        case _:
            return


DECLARED = {name: {*declared(inspect.type_info(each))} for name, each in EVENTS.types.items()}


def values(of: object, beginning: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path and the JSON of each value in a payload; of a list, together."""
    parts = of if isinstance(of, list) else [of]
    for name in {name: None for part in parts if isinstance(part, dict) for name in part}:
        found = [part[name] for part in parts if isinstance(part, dict) and name in part]
        inner = [each for part in found for each in (part if isinstance(part, list) else [part])]
        if any(each is not None for each in found):
            yield f"{beginning}{name}", json.dumps(found)
            yield from values(inner, f"{beginning}{name}.")


def touched(older: Older) -> set[str]:
    """Return the paths of today that the older payload lacks, or has with another value."""
    before = dict(values(older.before))
    return {path for path, value in values(older.today) if before.get(path) != value}


def misread(views: Iterable[LedgerView], olders: Iterable[Older]) -> set[tuple[str, str]]:
    """Return each view with a field that it reads by the name of today alone."""
    return {
        (view.name, path)
        for older in olders
        for view in views
        if older.type in types_of(view)
        for path in _read_by_one_name(view.select)
        if is_named(path, touched(older))
    }


def _read_by_one_name(select: str) -> set[str]:
    """Return the paths that stand in no coalesce together with another, or with a value."""
    alone = COALESCED.sub(
        lambda found: "" if len(re.findall("'[^']+'", found[1])) > 1 else found[0], select
    )
    return {*MENTION.findall(alone)}


def olders() -> Iterator[Older]:
    """Yield the stored payload of each version that an upcast reads."""
    for path in sorted(GOLDENS.iterdir()):
        name, version, *_ = path.name.split(".")
        place = name, int(version.removeprefix("v"))
        if place in UPCASTS:
            event = EVENTS.decode(*place, path.read_bytes())
            yield Older(name, json.loads(path.read_bytes()), msgspec.to_builtins(event))


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_a_view_reads_only_fields_that_its_events_have_or_had(view: LedgerView) -> None:
    """A field that was renamed, or is misspelt, would be NULL, and nobody would be told."""
    types = types_of(view)
    named = {path for name in types for path in DECLARED[name]}
    named |= {path for each in olders() if each.type in types for path, _ in values(each.before)}

    read = {*MENTION.findall(view.select)} - BOOKKEEPING

    assert not [path for path in read if not is_named(path, named)]


def test_no_view_reads_an_older_event_by_the_names_of_today_alone() -> None:
    """SQL takes no upcast: name the older field, too, by coalesce(today's, the older)."""
    assert misread(VIEWS, olders()) == set()
