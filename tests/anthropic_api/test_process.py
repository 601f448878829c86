"""The fake in a process of its own."""

from datetime import timedelta
from pathlib import Path

import pytest
from anthropic import OverloadedError

from tests.anthropic_api.faults import Fault, Shares
from tests.anthropic_api.process import FakeProcess
from tests.anthropic_api.requests import asking, client_of, requests, results


def test_a_process_serves_and_is_told_what_to_do(tmp_path: Path) -> None:
    """A client may be killed without the fake, and the bill is read from outside."""
    with (
        FakeProcess(tmp_path, "--ends-after-retrievals", "-1") as fake,
        client_of(fake.url) as client,
    ):
        fake.inject(Fault(endpoint="messages", kind="overloaded"), shares=Shares(expired=1.0))
        with pytest.raises(OverloadedError):
            client.messages.create(**asking())
        fake.clear()
        batch = client.messages.batches.create(requests=requests(3))
        is_open = fake.bill(settle=False).n_open_requests == 3
        fake.end_batches()
        came = results(client, batch)
        fake.advance(timedelta(days=29))
        bill = fake.bill()

        assert is_open
        assert len(came) == 3
        assert bill.n_paid_by_custom_id == {"q-0": 1, "q-1": 1, "q-2": 1}
        assert fake.bill(lines=False).lines == []
        assert client.messages.batches.retrieve(batch.id).archived_at


def test_a_process_refuses_what_it_does_not_understand(tmp_path: Path) -> None:
    """A test with a wrong fault must not go on as if there were none."""
    wrong = Fault(endpoint="everywhere", kind="cut_after")  # type: ignore[arg-type]  # wrong
    with FakeProcess(tmp_path) as fake:
        with pytest.raises(RuntimeError, match="everywhere"):
            fake.inject(wrong)

        assert fake.bill().calls == []
