"""Doctor: what a machine lacks is said before it costs anything."""

from collections.abc import Sequence
from datetime import date, timedelta
from functools import partial
from pathlib import Path

import pytest

from commands.errors import NoCredentials, ProviderError
from commands.runs import doctor
from commands.runs.doctor import (
    Finding,
    findings,
    judging_findings,
    require_servers,
)
from commands.settings.api_keys import ANTHROPIC_KEYS
from commands.settings.inputs import read_bank, shipped_data
from commands.settings.servers import Reach, Server, servers_of
from commands.settings.version import VERSION
from commands.spending.price_table import price_table
from ledger.identity import Dimension
from ledger.storage.files import beside
from ledger.store import Ledger
from tests.support.builders.commands import MINIMAL, record, settings_in, write_bank, write_rubric
from tests.support.builders.events import STREAM, opened
from tests.support.faults.hostile import unprivileged

FIXED = (3, 51, 3)
OLD = ((3, 7, 0), (3, 40, 1), (3, 51, 2))
JUROR, ENTRANT = "[[jury]] 'ann'", "[[entrants]] 'far'"
DAY_OF_PRICES = price_table().sheets[0].sheet.date


def found(
    ledger: Path,
    sqlite_version: tuple[int, ...] = FIXED,
    *,
    today: date = DAY_OF_PRICES,
    tables: Sequence[str] | None = None,
    reach: Reach = lambda _: None,
) -> dict[str, Finding]:
    """Return what was found, by what was looked at; with settings if there are tables of them."""
    config = None
    if tables is not None:
        config = ledger.parent / "tournament.toml"
        config.write_text("\n".join([MINIMAL, *tables]), encoding="utf-8")
    every = findings(config, ledger, sqlite_version, today=today, reach=reach)
    return {each.what: each for each in every}


def asked(
    table: str,
    provider: str = "anthropic",
    model: str = "claude-opus-5-5",
    key: str = "A_KEY",
    further: str = "",
) -> str:
    """Return the table of who is asked at a server."""
    where = f'model = "{model}"\nbase_url = "http://here/v1"\napi_key_env = "{key}"\n{further}'
    if table == ENTRANT:
        return f'[[entrants]]\nid = "far"\n{where}'
    begun = table if table == "[judge]" else '[[jury]]\nid = "ann"'
    return f'{begun}\nprovider = "{provider}"\n{where}'


@pytest.mark.parametrize(
    ("version", "grade", "says"),
    [
        *((each, "beware", " has the WAL-reset bug, fixed in 3.51.3: ") for each in OLD),
        *((each, "good", "") for each in (FIXED, (3, 52, 0), (4, 0))),
    ],
)
def test_an_sqlite_with_the_wal_reset_bug_is_named(
    tmp_path: Path, version: tuple[int, ...], grade: str, says: str
) -> None:
    """Two programs that write at the same moment can damage the file under it."""
    finding = found(tmp_path / "tournament.db", version)["SQLite"]

    name = ".".join(map(str, version))
    assert finding.grade == grade
    assert finding.says.startswith(f"{name}{says}") if says else finding.says == name


def test_a_machine_that_is_ready_has_nothing_bad(tmp_path: Path) -> None:
    """Everything that a run needs is looked at, and nothing is left behind."""
    seen = found(tmp_path / "tournament.db")

    assert list(seen) == [
        "tourney",
        "SQLite",
        "file system",
        "disk",
        "ledger",
        "models",
        "prices",
        "Anthropic key",
    ]
    assert {each.grade for each in seen.values()} == {"good"}
    assert seen["tourney"].says == VERSION
    assert seen["ledger"].says.endswith("tournament.db: not created yet")
    assert list(tmp_path.iterdir()) == []


def test_a_key_is_named_by_its_variable_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What doctor prints is pasted into bug reports."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-canary")
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)

    assert found(tmp_path / "tournament.db")["Anthropic key"].says == "ANTHROPIC_API_KEY is set"

    monkeypatch.delenv("ANTHROPIC_API_KEY")
    assert found(tmp_path / "tournament.db")["Anthropic key"].says.startswith("not set;")


def test_a_judge_without_its_key_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run would stop at it; of the jury one is asked only where it is named."""
    for name in ANTHROPIC_KEYS:
        monkeypatch.delenv(name, raising=False)
    path, jury = tmp_path / "tournament.db", [asked(JUROR)]

    judge = found(path, tables=[asked("[judge]")])["Anthropic key"]
    juror = found(path, tables=jury)["Anthropic key"]
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-canary")

    assert (judge.grade, juror.grade) == ("bad", "beware")
    assert judge.says == "not set, but [judge] needs it; export ANTHROPIC_API_KEY=..."
    assert juror.says == "not set, but [[jury]] 'ann' needs it; export ANTHROPIC_API_KEY=..."
    assert found(path, tables=jury)["Anthropic key"].grade == "good"


def test_the_key_of_another_maker_is_named_by_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each judge in batches has a key of its own."""
    monkeypatch.setenv("FIRST_KEY", "sk-canary")
    monkeypatch.delenv("SECOND_KEY", raising=False)
    servers = [
        asked("[judge]", "openai-batch", "gpt-5.6-luna", key="FIRST_KEY"),
        asked(JUROR, "openai-batch", "gpt-5.6-luna", key="SECOND_KEY"),
    ]

    said = found(tmp_path / "tournament.db", tables=servers)

    assert said["FIRST_KEY"] == Finding("FIRST_KEY", "good", "FIRST_KEY is set")
    why = "not set, but [[jury]] 'ann' needs it; export SECOND_KEY=..."
    assert said["SECOND_KEY"] == Finding("SECOND_KEY", "beware", why)


def test_a_ledger_is_named_with_its_head(tmp_path: Path) -> None:
    """Whoever asks how things stand can note at once what proves it later."""
    path = tmp_path / "tournament.db"
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, opened())
        head = ledger.head

    assert found(path)["ledger"] == Finding("ledger", "good", f"{path}, head {head}")


def test_a_file_that_is_no_ledger_is_bad(tmp_path: Path) -> None:
    """A run would stop at it; better to know before."""
    path = tmp_path / "tournament.db"
    path.write_text("Dear diary, " * 100)

    finding = found(path)["ledger"]

    assert finding.grade == "bad"
    assert "is not a ledger" in finding.says


def test_a_log_that_cannot_be_written_is_bad(public_folder: Path) -> None:
    """Whoever only looked may have left it; the first answer that is paid for would be lost."""
    path = public_folder / "tournament.db"
    index = beside(path, "-shm")
    with unprivileged():
        with Ledger.open(path) as ledger:
            ledger.append(STREAM, opened())
        with Ledger.read_only(path):
            index.chmod(0o444)

        finding = found(path)["ledger"]

    assert finding.grade == "bad"
    assert f"no write permission for {index} (uid" in finding.says


def test_a_ledger_with_a_table_of_another_program_is_bad(tmp_path: Path) -> None:
    """Nothing could be appended to it."""
    path = tmp_path / "tournament.db"
    with Ledger.open(path) as ledger:
        ledger.append(STREAM, opened())
        ledger.connection.execute("CREATE TABLE note (text)")

    finding = found(path)["ledger"]

    assert finding.grade == "bad"
    assert "table 'note' was not made by tourney" in finding.says


def test_a_ledger_on_a_network_is_bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Known before the first run, it costs nothing."""
    monkeypatch.setattr(doctor, "foreign_kind", lambda _: "nfs4")  # no test can mount a network

    assert found(tmp_path / "tournament.db")["file system"] == Finding(
        "file system", "bad", "nfs4: keep the ledger on a local disk"
    )


def test_a_folder_that_cannot_be_written_is_bad(tmp_path: Path) -> None:
    """What is not recorded must not be paid for; the check itself goes on."""
    seen = found(tmp_path / "no such folder" / "tournament.db")

    assert seen["disk"].grade == "bad"
    assert "cannot be written" in seen["disk"].says
    assert seen["models"].grade == "good"


@pytest.mark.parametrize(("tables", "grade"), [([], "bad"), (None, "good")])
def test_missing_packages_are_a_fault_only_of_who_has_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tables: list[str] | None, grade: str
) -> None:
    """A tournament of recorded answers needs no PyTorch."""
    monkeypatch.setattr(doctor, "find_spec", lambda _: None)

    seen = found(tmp_path / "tournament.db", tables=tables)["models"]

    assert seen.grade == grade
    assert seen.says.startswith("torch, transformers, peft not installed; ")


def test_prices_that_may_have_changed_are_told(tmp_path: Path) -> None:
    """An estimate from an old table is wrong without anybody's fault; after 60 days it is said."""
    path = tmp_path / "tournament.db"

    fresh = found(path, today=DAY_OF_PRICES + timedelta(days=60))["prices"]
    stale = found(path, today=DAY_OF_PRICES + timedelta(days=61))["prices"]

    of, file = f"shipped prices of {DAY_OF_PRICES}", shipped_data() / "prices.toml"
    assert fresh == Finding("prices", "good", f"{of}, 60 days old: {file}")
    assert stale.grade == "beware"
    assert stale.says == f"{of}, 61 days old: {file}; compare them with the provider's"


def test_a_price_table_of_ones_own_is_named_before_the_shipped_one(tmp_path: Path) -> None:
    """Its rows go before the shipped ones, and nothing else shows how old they are."""
    factors = "batch_factor = 0.5\ncache_write_5m_factor = 1.25\ncache_write_1h_factor = 2.0\n"
    own = tmp_path / "mine.toml"
    own.write_text(f"date = 2026-01-01\n{factors}models = []\n", encoding="utf-8")
    config = tmp_path / "tournament.toml"
    config.write_text(f'{MINIMAL}\n[judge]\nprices = "mine.toml"\n', encoding="utf-8")

    every = findings(config, tmp_path / "t.db", FIXED, today=DAY_OF_PRICES, reach=lambda _: None)
    first, second = [each for each in every if each.what == "prices"]

    assert (first.grade, second.grade) == ("beware", "good")
    assert first.says.startswith(f"mine.toml of 2026-01-01, 279 days old: {own}; compare")


def unreachable(server: Server) -> str | None:
    """Find nobody there, as `Reach`."""
    raise ProviderError(f"{server.base_url} cannot be reached; correct base_url")


def test_a_server_that_answers_is_good(tmp_path: Path) -> None:
    """Those of the judge, the jury and the entrants are asked, each by its table."""
    tables = ("[judge]", JUROR, ENTRANT)

    said = found(tmp_path / "t.db", tables=[asked(each, "endpoint") for each in tables])

    for table in tables:
        assert said[f"server of {table}"] == Finding(f"server of {table}", "good", "answers")


def refusing(_: Server) -> str | None:
    """Let nobody in, as `Reach`."""
    raise NoCredentials("http://here/v1 wants a key", "A_KEY")


NOBODY = "http://here/v1 cannot be reached; correct base_url"


@pytest.mark.parametrize(
    ("table", "reach", "grade", "says"),
    [
        ("[judge]", unreachable, "bad", NOBODY),
        (JUROR, unreachable, "beware", NOBODY),  # is asked only if it is named
        (ENTRANT, unreachable, "bad", NOBODY),
        ("[judge]", refusing, "bad", "http://here/v1 wants a key; export A_KEY="),
        ("[judge]", lambda _: "m is not listed", "beware", "m is not listed"),  # some list not all
    ],
)
def test_a_server_that_cannot_be_asked_is_told(
    tmp_path: Path, table: str, reach: Reach, grade: str, says: str
) -> None:
    """Before a run whose responses nobody could judge."""
    said = found(tmp_path / "t.db", tables=[asked(table, "endpoint")], reach=reach)

    finding = said[f"server of {table}"]
    assert finding.grade == grade
    assert finding.says.startswith(says)


def test_without_the_key_that_it_needs_a_server_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One finding for one fault."""
    monkeypatch.delenv("A_KEY", raising=False)

    said = found(tmp_path / "t.db", tables=[asked("[judge]", "openai-batch")], reach=unreachable)

    assert said["A_KEY"].grade == "bad"
    assert "server of [judge]" not in said


@pytest.mark.parametrize(
    ("provider", "cap_usd", "grade"),
    [
        ("endpoint", None, None),  # is asked without consent
        ("anthropic", None, "beware"),
        ("endpoint", 5.0, "bad"),
        ("anthropic", 5.0, "bad"),
    ],
)
def test_a_model_without_a_price_is_an_obstacle_below_a_cap(
    tmp_path: Path, provider: str, cap_usd: float | None, grade: str | None
) -> None:
    """A run would stop at it, after everything was generated."""
    cap = "" if cap_usd is None else f"max_usd = {cap_usd}\n"
    judge = asked("[judge]", provider, "nameless-7b", further=cap)

    said = found(tmp_path / "t.db", tables=[judge])

    finding = said.get("price of nameless-7b")
    assert (finding and finding.grade) == grade
    assert finding is None or "set [judge] prices = FILE" in finding.says


def test_a_cap_on_judging_is_not_on_entrants_and_prices_that_are_known_are_good(
    tmp_path: Path,
) -> None:
    """[judge] max_usd says nothing of entrants."""
    entrant, judge = asked(ENTRANT, model="nameless-7b"), asked("[judge]", further="max_usd = 5.0")

    said = found(tmp_path / "t.db", tables=[judge, entrant])

    assert not [what for what in said if what.startswith("price of")]


def test_servers_are_required_before_a_run(tmp_path: Path) -> None:
    """A doubt is told, and is no obstacle."""
    told: list[str] = []
    settings = settings_in(tmp_path, f"{MINIMAL}{asked('[judge]', 'endpoint')}")
    servers = [*servers_of(settings)]

    require_servers(servers, lambda _: "it does not list m", told.append)

    assert told == ["[judge]: it does not list m"]
    with pytest.raises(ProviderError, match="cannot be reached"):
        require_servers(servers, unreachable, told.append)


def test_settings_under_repair_are_told_beside_the_rest(tmp_path: Path) -> None:
    """Whoever asks what is missing wants to see all of it."""
    config = tmp_path / "tournament.toml"
    config.write_text('[tournament]\nid = "x"\n[elo]\nk = 0\n', encoding="utf-8")

    said = [
        *findings(config, tmp_path / "t.db", FIXED, today=DAY_OF_PRICES, reach=lambda _: "asked")
    ]

    assert [each.grade for each in said if each.what == "ledger"] == ["good"]
    assert [each.says.partition(": ")[2] for each in said if each.what == "settings"] == [
        "'entrants' is missing",
        "'rubrics' is missing",
        "'elo.k' is 0: must be above 0",
    ]


def test_a_price_table_that_is_not_there_is_told_beside_the_rest(tmp_path: Path) -> None:
    """A price table of one's own may have what the shipped one lacks."""
    tables = [asked("[judge]", "endpoint", further='prices = "none.toml"\n')]

    assert "none.toml" in found(tmp_path / "t.db", tables=tables)["settings"].says


def judging_in(folder: Path, fronts: Sequence[str], *golds: str | None) -> list[tuple[str, str]]:
    """Return what is found of a bank with these gold answers, and rubrics with these fronts."""
    bank = write_bank(
        folder / "bank.jsonl",
        [record(f"p{number}", gold_answer=gold) for number, gold in enumerate(golds)],
    )
    rubrics = {}
    for number, front in enumerate(fronts):
        rubrics[Dimension(f"d{number}")] = folder / f"{number}.md"
        write_rubric(folder / f"{number}.md", front=front)
    return [(each.grade, each.says) for each in judging_findings(partial(read_bank, bank), rubrics)]


def test_prompts_without_the_gold_answers_that_rubrics_need_are_found(tmp_path: Path) -> None:
    """Before the responses are paid for that nobody could judge."""
    needs, does_not = "needs_gold = true", "needs_gold = false"

    assert judging_in(tmp_path, [needs], "yes", "no") == []
    assert judging_in(tmp_path, [needs], "yes", None) == [
        ("beware", "d0: 1 prompt has no gold answer, and is left out")
    ]
    ((grade, says),) = judging_in(tmp_path, [needs, does_not], None, " ")
    assert (grade, says.partition(": the")[0]) == ("beware", "d0: nothing can be judged")
    assert [grade for grade, _ in judging_in(tmp_path, [needs, needs], "")] == ["bad", "bad"]


def test_a_bank_that_cannot_be_read_is_bad(tmp_path: Path) -> None:
    """A run would end on it at once."""
    read = partial(read_bank, tmp_path / "none.jsonl")

    (found,) = judging_findings(read, {Dimension("d"): tmp_path / "d.md"})

    assert found.grade == "bad"
    assert "there is no such prompt bank" in found.says


def test_files_that_would_end_a_run_are_named(tmp_path: Path) -> None:
    """A run would stop there; answers can be read only where the bank can."""
    lacking = [
        '[[entrants]]\nid = "given"\nresponses = "none.csv"',
        '[[evaluations]]\nid = "graded"\nuses = "bank-rollout"\nrubric = "none.md"',
    ]
    without_bank = found(tmp_path / "tournament.db", tables=lacking)
    write_bank(tmp_path / "bank.jsonl", [{"prompt_id": "p", "text": "Why?", "source": "s"}])

    seen = found(tmp_path / "tournament.db", tables=lacking)

    assert seen["rubric of [[evaluations]] 'graded'"].grade == "bad"
    assert "none.csv: there is no such file" in seen["answers of [[entrants]] 'given'"].says
    assert seen.keys() - without_bank.keys() == {"answers of [[entrants]] 'given'"}
