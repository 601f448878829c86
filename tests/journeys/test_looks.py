"""Verdicts are looked at in waves: decided pairs are asked no more, and a kill changes nothing."""

import json
import random
import re
import shutil
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from commands.judging.waves import sentence_of_last_look
from ledger.auditing.audit import audit
from ledger.events.judging import JudgeQueryFailed, LookTaken, VerdictReceived
from ledger.events.registry import Event
from ledger.store import Ledger
from projections.ratings.looks import look_now
from tests.providers.openai import FakeOpenAI, Json, Said
from tests.support.builders.games import CHANGE, forge_with_hashes
from tests.support.command_line import paid
from tests.support.command_line.served import Served
from tests.support.faults.death import Death, before

N_PROMPTS: Final = 60
N_LOOKS: Final = 3
N_QUERIES: Final = 3 * N_PROMPTS * 2  # of three pairs, in both orders
N_IN_WAVE: Final = N_QUERIES // N_LOOKS
STRENGTHS: Final = {"small-a": 0.0, "small-b": 0.0, "large-c": 2.0}


class LookedAt(Served):
    """A tournament of three entrants, one of which is better than the others."""

    def __init__(self, folder: Path, server: FakeOpenAI) -> None:
        super().__init__(folder, server, n_prompts=N_PROMPTS)
        self.look()

    def look(self, judging: str = f"looks = {N_LOOKS}") -> None:
        """Write the settings."""
        self.configure(
            {name: self.at(name) for name in STRENGTHS},
            further=f"[judging]\n{judging}\n\n[pilot]\nsize = 4\n",
            judge='prices = "prices.toml"\n',
            jury=f'[[jury]]\nid = "second"\nprovider = "endpoint"\n{self.at("judge-7b")}',
        )

    def killed(self, *words: str, death: Death) -> None:
        """Run a command that is killed on its way."""
        ended = paid.command(self.folder, *words, url=self.server.url, death=death).wait()
        assert ended.code == -signal.SIGKILL, ended

    def elsewhere(self, folder: Path) -> "LookedAt":
        """Return another tournament like it, with nothing on its ledger."""
        folder.mkdir()
        return LookedAt(folder, self.server)

    @property
    def events(self) -> list[Event]:
        """What is on the ledger, which is whole."""
        with Ledger.read_only(self.folder / "tournament.db") as ledger:
            assert audit(ledger) == ()
            return [recorded.event for recorded in ledger.read()]

    def expect_like(self, other: "LookedAt") -> None:
        """Expect another's looks, and that no query was paid for twice; count anew."""
        assert self.looks == other.looks
        verdicts = Counter(
            event.query_key for event in self.events if isinstance(event, VerdictReceived)
        )
        n_lost = sum(isinstance(event, JudgeQueryFailed) for event in self.events)
        assert {*verdicts.values()} == {1}
        assert len(self.asked()) <= len(verdicts) + n_lost
        self.server.traffic.asked.clear()

    @property
    def looks(self) -> list[LookTaken]:
        """The looks on the ledger."""
        return [event for event in self.events if isinstance(event, LookTaken)]

    @property
    def n_responses(self) -> int:
        """How many responses were asked for."""
        return sum(len(self.asked(name)) for name in STRENGTHS)


class Ran(NamedTuple):
    """A tournament that was run undisturbed, what the run told, and what the judge was asked."""

    place: LookedAt
    told: str
    asked: Sequence[Json]


def _say(body: Json) -> Said:
    """Answer, or judge by strengths and by what is peculiar to two answers to a prompt."""
    model, text = str(body["model"]), str(body["messages"])
    if not model.startswith("judge"):
        return Said(f"{model} says: {text}")
    a, b = list(dict.fromkeys(re.findall(r"((?:small|large)-\w) says", text)))
    number = re.findall(r"Question (\d+)", text)[0]
    luck = random.Random(f"{sorted((a, b))} {number}").gauss(0, 1)  # noqa: S311  # no secret
    lead = STRENGTHS[a] - STRENGTHS[b] + (luck if a < b else -luck)
    verdict = "A" if lead > 0 else "B"
    if "Under the name of each dimension" in text:
        together = {name: {"reasoning": "", "verdict": verdict} for name in ("quality", "style")}
        return Said(json.dumps(together))
    return Said(f"VERDICT: {verdict}")


@pytest.fixture(scope="module")
def server() -> Iterator[FakeOpenAI]:
    """Give the server of all entrants and judges."""
    with FakeOpenAI(_say) as server:
        yield server


@pytest.fixture
def place(tmp_path: Path, server: FakeOpenAI) -> LookedAt:
    """Give a tournament with looks, of which nothing was asked yet."""
    server.traffic.asked.clear()
    folder = tmp_path / "first"
    folder.mkdir()
    return LookedAt(folder, server)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, server: FakeOpenAI) -> Ran:
    """Give one that was run, to be copied."""
    server.traffic.asked.clear()
    place = LookedAt(tmp_path_factory.mktemp("ran"), server)
    done = place.tourney("run", "--yes")
    assert done.code == 0, done.err
    return Ran(place, done.err, place.asked())


@pytest.fixture
def done(ran: Ran, place: LookedAt) -> LookedAt:
    """Give a copy of one that was run."""
    shutil.copytree(ran.place.folder, place.folder, dirs_exist_ok=True)
    return place


def stopped(looks: Sequence[LookTaken]) -> tuple[set[frozenset[str]], set[frozenset[str]]]:
    """Return the decided and the futile pairs, by label."""
    decided, futile = (
        {
            frozenset((pair.a.label, pair.b.label))
            for look in looks
            for each in look.dimensions
            for pair in getattr(each, kind)
        }
        for kind in ("decided", "futile")
    )
    return decided, futile


def test_a_run_asks_less_and_nothing_twice(ran: Ran, done: LookedAt) -> None:
    """The better entrant is found out; what was spared is asked once looks are switched off."""
    decided, _ = stopped(done.looks)
    assert decided == {frozenset(("large-c", name)) for name in ("small-a", "small-b")}
    n_asked = len(ran.asked)
    assert n_asked < 0.9 * N_QUERIES
    assert len({json.dumps(body) for body in ran.asked}) == n_asked
    assert [look.number for look in done.looks] == [*range(1, len(done.looks) + 1)]
    for look in done.looks:
        assert f"look {look.number} of 3: quality: " in ran.told
    n_spared = (N_QUERIES - n_asked) // 2
    said = f"2 of 3 pairs decided, 1 futile; {n_spared} comparisons spared"
    for command in ("status --tournament served", "project elo", "report --format md"):
        assert said in done.tourney(*command.split()).out.replace("\n", " ")
    assert done.tourney("report", "-o", "page.html").code == 0
    assert said in (done.folder / "page.html").read_text()
    spent = done.tourney("project", "spend").out
    assert f"looks spared {n_spared} comparisons, about $0.0" in spent
    assert "0 differences" in done.tourney("replay").out
    assert done.tourney("verify").code == 0
    compared = json.loads(done.tourney("plan", "judge", "--target", "25", "--json").out)
    rows = {(row["design"], row["n_prompts"]): row["n_queries"] for row in compared["rows"]}
    assert rows["all pairs", N_PROMPTS] == 0  # what looks spared is not owed

    again = done.tourney("run", "--yes")
    assert (again.code, said in again.out.replace("\n", " ")) == (0, True)
    assert done.asked() == []
    done.look("")
    assert done.tourney("run", "--yes").code == 0
    asked = [*ran.asked, *done.asked()]
    assert len(asked) == len({json.dumps(body) for body in asked}) == N_QUERIES


def test_apply_goes_wave_by_wave(place: LookedAt) -> None:
    """Each `generate` asks for one wave, each `judge` looks at it and says what waits.

    Limits and caps end inside a wave: no look is taken at a part, and the next command goes on.
    """
    assert "they may spare comparisons and responses" in place.tourney(
        "plan", "generate"
    ).out.replace("\n", " ")
    assert place.tourney("apply", "generate", "--yes").code == 0
    limited = place.tourney("apply", "judge", "--yes", "--limit", "5")
    capped = place.tourney("apply", "judge", "--yes", "--max-usd", "0.012")
    assert f"no look is taken yet: {N_IN_WAVE - 5} queries have no verdict" in limited.err
    assert capped.code != 0
    assert 5 <= len(place.asked()) < N_IN_WAVE
    assert place.looks == []

    n_waves = 0
    while True:
        judged = place.tourney("apply", "judge", "--yes")
        n_waves += 1
        assert f"look {n_waves} of 3: quality: " in judged.err
        if n_waves == 1:
            assert len(place.asked()) == N_IN_WAVE
        if judged.code == 0:
            break
        assert "run `tourney apply generate` first" in judged.err
        assert place.tourney("apply", "generate", "--yes").code == 0
    assert n_waves == len(place.looks)
    assert len(place.asked()) < N_QUERIES
    assert place.n_responses <= 3 * N_PROMPTS

    nothing = place.tourney("apply", "judge", "--yes")
    assert "0 queries were open" in nothing.out + nothing.err


DEATHS: Final = (before(look_now), before(sentence_of_last_look), before(look_now))


@pytest.mark.parametrize("n_kills", [2, pytest.param(100, marks=pytest.mark.nightly)])
def test_killed_between_and_inside_waves_it_decides_the_same(
    ran: Ran, place: LookedAt, tmp_path: Path, n_kills: int
) -> None:
    """Before a look, right after one, and by night at random steps; each query has one verdict."""
    rng = random.Random(20260427)  # noqa: S311  # places, not secrets
    deaths = chain(DEATHS, (Death(rng.randint(200, 1_000)) for _ in count()))

    n_killed, killed = 0, place
    while n_killed < n_kills:
        death = next(deaths)
        ended = paid.command(killed.folder, "run", "--yes", url=killed.server.url, death=death)
        code = ended.wait().code
        assert code in ({-signal.SIGKILL} if death in DEATHS else {0, -signal.SIGKILL})
        n_killed += code != 0
        if code == 0:  # it is done: another one begins
            killed.expect_like(ran.place)
            killed = killed.elsewhere(tmp_path / f"after {n_killed}")
    assert killed.tourney("run", "--yes").code == 0
    killed.expect_like(ran.place)


def test_a_look_that_says_otherwise_is_found_by_replay(done: LookedAt) -> None:
    """Even where all hashes are made anew, as `verify` cannot see."""
    path = done.folder / "tournament.db"
    with Ledger.read_only(path) as ledger:
        look, position = next(
            (recorded.event, recorded.position)
            for recorded in ledger.read()
            if isinstance(recorded.event, LookTaken) and recorded.event.dimensions[0].decided
        )

    undecided = "json_set(CAST(data AS TEXT), '$.dimensions[0].decided', json('[]'))"
    forge_with_hashes(path, CHANGE(f"data = CAST({undecided} AS BLOB)", position))

    replayed = done.tourney("replay")
    assert replayed.code == 8
    assert f"look {look.number}" in replayed.out + replayed.err
    assert "its verdicts decide otherwise" in replayed.out + replayed.err


def test_a_ledger_that_went_on_elsewhere_is_merged_with_its_looks(
    place: LookedAt, tmp_path: Path
) -> None:
    """What it decided is asked no more here, either; it is not replayed, as it was taken there.

    There may be any number of looks, each after twenty prompts; two decide all.
    """
    place.look('looks = "any"')
    assert place.tourney("apply", "generate", "--yes").code == 0
    assert place.tourney("apply", "judge", "--yes", "--limit", "10").code == 0
    other = LookedAt(shutil.copytree(place.folder, tmp_path / "second"), place.server)
    other.look('looks = "any"')
    assert other.tourney("run", "--yes").code == 0
    assert [len(look.prompts) for look in other.looks] == [20, 20]
    assert "0 differences" in other.tourney("replay").out
    n_asked = len(place.asked())

    merged = place.tourney("merge", str(other.folder / "tournament.db"))

    assert merged.code == 0, merged.err
    assert place.looks == other.looks
    assert place.tourney("run", "--yes").code == 0
    assert len(place.asked()) == n_asked
    assert "0 differences" in place.tourney("replay").out


def test_batches_are_sent_a_wave_at_a_time(tmp_path: Path) -> None:
    """Without waiting each command receives a wave, looks at it, and sends the next."""
    folder = paid.lay_out(tmp_path / "paid", n_prompts=40)
    waves = f"[judging]\nlooks = 2\n\n{paid.SETTINGS}"
    (folder / "tournament.toml").write_text(paid.settings(head=waves))
    paid.record_responses(folder)
    judge = ("apply", "judge", "--yes", "--no-wait")
    with paid.provider(n_looks=None) as fake:
        sent = paid.tourney(folder, *judge, url=fake.url)
        waiting = paid.tourney(folder, *judge, url=fake.url)
        fake.end_batches()
        second = paid.tourney(folder, *judge, url=fake.url)
        n_by_then = len(paid.verdicts_in(folder))
        fake.end_batches()
        done = paid.tourney(folder, *judge, url=fake.url)
        bill = fake.bill()

    assert (sent.code, waiting.code, second.code, done.code) == (7, 7, 7, 0), done.err
    assert "look 1 of 2: factuality: 0 pairs decided" in second.err
    assert "look 2 of 2: " in done.err
    assert n_by_then == 720 < len(paid.verdicts_in(folder)) < 1440  # what is futile is left out
    paid.require_paid_as_recorded(folder, bill)


def test_what_looks_will_leave_to_ask_is_forecast_from_a_pilot(place: LookedAt) -> None:
    """Too few prompts tell nothing; of a pilot, which takes no look, so much for so many dollars.

    Of two dimensions that are asked together each pays half of a request.
    """
    assert "in 9 of 10 cases" not in place.tourney("plan", "judge").out
    place.look(f"looks = {N_LOOKS}\ntogether = true")
    toml = place.folder / "tournament.toml"
    style = '[[rubrics]]\ndimension = "style"\npath = "quality.md"\n\n[judge]'
    text = toml.read_text().replace("size = 4", "size = 20").replace("[judge]", style)
    toml.write_text(text)
    piloted = place.tourney("run", "--yes", "--mode", "pilot")
    assert piloted.code == 0
    assert "second was not asked: `tourney apply judge --judge second` asks it" in piloted.err
    assert (place.looks, len(place.asked())) == ([], 20 * 3 * 2)

    planned = place.tourney("plan", "judge").out

    n_left = (N_PROMPTS - 20) * 3 * 2
    forecasts = re.findall(
        r"(\w+): in .* leave (\d+) to (\d+) of (\d+) queries to ask, \$.* to \$(\S+)", planned
    )
    assert [(name, int(n)) for name, *_, n, _ in forecasts] == [
        ("quality", n_left),
        ("style", n_left),
    ]
    (spent,) = re.findall(r"\$(\S+) spent", planned)
    for _, low, high, n, usd in forecasts:
        assert int(low) <= int(high) <= int(n)
        assert int(low) < int(n)
        assert float(usd) / int(high) == pytest.approx(float(spent) / (2 * 120), rel=0.1)
