"""A tournament whose judge is paid: four entrants that have answered, a provider that is faked.

Only the responses are made up; the command line, the SDK, HTTP and the ledger are the real ones.
"""

import gc
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from math import fsum
from pathlib import Path
from typing import Final

import pytest

from commands.cli.shared.workspace import workspace
from commands.decisions.commands import RecordResponse
from commands.ports import GeneratedText
from commands.spending.price_table import price_table
from ledger.events.judging import JudgeQueryFailed, ReplyRead, ScoreReceived, VerdictReceived
from ledger.events.money import Usage, cost_usd
from ledger.events.requests import Charge, RequestsSettled
from ledger.identity import Digest, StreamId
from ledger.store import Ledger
from projections.fold import fold
from projections.tournament.matches import PlannedResponse, planned_responses
from projections.tournament.requests import Bill as LedgerBill
from projections.tournament.spend import spend_of
from tests.providers.anthropic.bill import Bill, Line
from tests.providers.anthropic.server import FakeAnthropic
from tests.support.builders.commands import write_weights
from tests.support.command_line.settled import events_in
from tests.support.command_line.warm import Ended, Running, begin, run_warm
from tests.support.faults.death import Death
from tests.support.patience import wait_until

CANARY: Final = "sk-ant-canary-5f1d7c"  # a key that must appear nowhere
JUDGE: Final = "claude-opus-5-5"  # of the headline, where no test says otherwise
ENTRANTS: Final = ("base", "secure", "robust", "jury")
DIMENSIONS: Final = ("factuality", "calibration", "clinical_utility")
ENTRANTS_BY_NAME: Final = """\
[tournament]
id = "paid"

[generation]
max_new_tokens = 2000

[[entrants]]
id = "opus"
model = "anthropic/claude-opus-5-5"

[[entrants]]
id = "sonnet"
model = "anthropic/claude-sonnet-5-5"
system = "Be brief."

[[rubrics]]
dimension = "factuality"
path = "rubrics/factuality.md"

[judge]
model = "anthropic/claude-opus-5-5"
"""
"""Settings of two entrants at Anthropic and a judge, by their names alone."""
_OWN_WEIGHTS: Final = tuple((name, name) for name in ENTRANTS)
_ROOT: Final = Path(__file__).parents[3]

SETTINGS: Final = """\
[tournament]
id = "paid"

[generation]
max_new_tokens = 40
dtype = "float32"

[judge]
provider = "anthropic-batch"
instructions = "rubrics/judge_medical.md"
"""
_USUAL: Final = {"pilot_model": "claude-sonnet-5-5"}


def lay_out(
    folder: Path, *, n_prompts: int | None = None, judge: Mapping[str, object] | None = None
) -> Path:
    """Lay out the shipped bank, or its start, and rubrics, with weights that nobody loads."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = (_ROOT / "data" / "bank.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "bank.jsonl").write_text("".join(lines[:n_prompts]), encoding="utf-8")
    shutil.copytree(
        _ROOT / "rubrics",
        folder / "rubrics",
        ignore=lambda _, names: {name for name in names if not name.endswith(".md")},
    )
    for n, entrant in enumerate(ENTRANTS):
        write_weights(folder / "weights" / entrant, first_byte=n)
    (folder / "tournament.toml").write_text(settings(judge=judge), encoding="utf-8")
    return folder


def settings(
    *,
    entrants: tuple[tuple[str, str], ...] = _OWN_WEIGHTS,
    judge: Mapping[str, object] | None = None,
    head: str = SETTINGS,
) -> str:
    """Return settings of entrants (id, weights), with further keys of [judge]."""
    keys = "".join(
        f"{key} = {json.dumps(value)}\n" for key, value in {**_USUAL, **(judge or {})}.items()
    )
    tables = "".join(
        f'\n[[entrants]]\nid = "{name}"\nweights = "weights/{weights}"\n'
        for name, weights in entrants
    ) + "".join(
        f'\n[[rubrics]]\ndimension = "{name}"\npath = "rubrics/{name}.md"\n' for name in DIMENSIONS
    )
    return head + keys + tables


def own_text(cell: PlannedResponse) -> str:
    """Answer differently from everybody else."""
    return f"{cell.entrant.entrant_id} says of {cell.prompt.prompt_id}: rest and fluids."


def record_responses(folder: Path, text_of: Callable[[PlannedResponse], str] = own_text) -> None:
    """Open the tournament, and record a response for each cell."""
    place = workspace(folder / "tournament.toml", None)
    with place.recorder(print) as recorder:
        recorder.record(place.opening)
        everything = [prompt.prompt_id for prompt in recorder.state.bank]
        recorder.record(
            *(
                RecordResponse(cell, _generated(cell, text_of(cell)))
                for cell in planned_responses(recorder.state, everything)
            )
        )


def _generated(cell: PlannedResponse, text: str) -> GeneratedText:
    return GeneratedText(cell.response_key, text, "stop", 10, 10, elapsed_s=0.1)


def provider(*, n_looks: int | None = 1) -> FakeAnthropic:
    """Return a provider whose batches end at the n-th look, or when they are told to (None)."""
    return FakeAnthropic(ends_after_retrievals=n_looks)


def hear_out(fake: FakeAnthropic) -> None:
    """Wait until a provider is done with all that clients sent which have ended."""
    gc.collect()  # a command that ran in this process is let go, and its client with it
    wait_until(lambda: fake.n_open == 0)


def environment(url: str, **more: str) -> dict[str, str]:
    """Return what a command that asks the fake finds in its environment."""
    outside = {name: text for name, text in os.environ.items() if not name.startswith("ANTHROPIC")}
    return {**outside, "ANTHROPIC_API_KEY": CANARY, "ANTHROPIC_BASE_URL": url, **more}


def command(
    folder: Path, *words: str, url: str, death: Death | None = None, **more: str
) -> Running:
    """Begin a command in a folder, to be killed where its death says so; do not wait for it."""
    return begin(folder, words, environment(url, **more), death=death)


def tourney(folder: Path, *words: str, url: str, **more: str) -> Ended:
    """Run a command in a folder to its end, without a terminal."""
    return run_warm(folder, words, environment(url, **more))


def paid_by_ledger(folder: Path) -> Counter[Digest]:
    """Return how many paid replies a sound ledger holds, by query."""
    return Counter(each.query_key for each in _paid_replies(folder))


def _paid_replies(folder: Path) -> list[ReplyRead | JudgeQueryFailed]:
    replies: list[ReplyRead | JudgeQueryFailed] = events_in(
        folder, VerdictReceived, ScoreReceived, JudgeQueryFailed
    )
    return [each for each in replies if each.usage is not None]


def verdicts_in(folder: Path) -> dict[Digest, str]:
    """Return the verdicts on record."""
    return {each.query_key: each.verdict for each in events_in(folder, VerdictReceived)}


def charges_in(folder: Path) -> list[Charge]:
    """Return what became of the requests to entrants."""
    return [each for step in events_in(folder, RequestsSettled) for each in step.charges]


def require_paid_as_recorded(folder: Path, bill: Bill) -> None:
    """Compare the provider's bill with the ledger: every paid reply is there, and no other."""
    assert dict(bill.n_paid_by_custom_id) == dict(paid_by_ledger(folder))


def require_spent_as_billed(folder: Path, bill: Bill) -> None:
    """Compare the dollars of both, where all was asked in batches of one model."""
    usages = [usage_of(line) for line in bill.paid]
    assert spend_in(folder).usd == pytest.approx(usd_of(usages, in_batch=True), abs=1e-9)


def usage_of(line: Line) -> Usage:
    """Return the tokens of a line of the bill as the ledger names them."""
    used = line.usage
    return Usage(used.n_input, used.n_output, used.n_written_5m, used.n_written_1h, used.n_read)


def usages_in(folder: Path) -> Counter[Usage]:
    """Return the tokens of each paid reply on record."""
    return Counter(each.usage for each in _paid_replies(folder) if each.usage)


def usd_of(usages: Iterable[Usage], *, in_batch: bool) -> float:
    """Return what the judge's replies cost by the shipped prices."""
    priced = price_table().of(JUDGE)
    assert priced is not None
    return fsum(cost_usd(each, priced.price(each, in_batch=in_batch)) for each in usages)


def spend_in(folder: Path) -> LedgerBill:
    """Return the total of `project spend`."""
    with Ledger.read_only(folder / "tournament.db") as ledger:
        return fold(spend_of(StreamId("paid")), ledger.read()).total
