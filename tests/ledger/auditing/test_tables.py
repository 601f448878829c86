"""The versions that an audit expects."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.auditing import tables
from ledger.auditing.tables import _VERSION_BEFORE, StreamVersions
from ledger.identity import StreamId
from ledger.store import Ledger
from tests.support.builders.events import STREAM, verdicts

OTHER = StreamId("other")


@given(turns=st.lists(st.booleans(), max_size=20), data=st.data())
def test_the_version_of_a_stream_is_known_from_any_position_on(
    turns: list[bool], data: st.DataObject
) -> None:
    """Whether its last event is among the newest, or must be looked for."""
    until = data.draw(st.integers(0, len(turns)))
    looked_up = _VERSION_BEFORE.replace("LIMIT 1000", "LIMIT 1")
    with Ledger.in_memory() as ledger, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_VERSION_BEFORE", looked_up)
        for is_other, event in zip(turns, verdicts(len(turns)), strict=True):
            ledger.append(OTHER if is_other else STREAM, [event])
        versions = StreamVersions(ledger.select, until)

        assert versions[OTHER.encode()] == sum(turns[:until])
        assert versions[STREAM.encode()] == until - sum(turns[:until])
