"""Use case: check that this machine and this ledger are ready for a run that costs money."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

from commands.auditing.soundness import require_sound
from commands.errors import ConfigurationError, ProviderError, counted
from commands.importing.answers import read_answers
from commands.importing.bank import OpenDataset, bank_named, no_dataset
from commands.judging.unreadable import gold_notes
from commands.ports import Tell
from commands.settings.api_keys import ANTHROPIC_KEYS, first_set
from commands.settings.inputs import read_instructions, read_rubric, read_scoring_rubric
from commands.settings.reader import read_settings
from commands.settings.schema import Settings
from commands.settings.sections import RecordedSection
from commands.settings.servers import Reach, Server, servers_of
from commands.settings.version import VERSION
from commands.spending.budget import no_price
from commands.spending.price_table import NamedSheet, PriceTable, price_table
from ledger.errors import NoLedger, TourneyError
from ledger.events.registration import Prompt
from ledger.identity import Dimension
from ledger.storage.connection import require_own_schema
from ledger.storage.place import foreign_kind, require_one_name
from ledger.storage.sharing import require_writable
from ledger.store import Ledger
from projections.results.columns import Column, Shown
from projections.tournament.bank import is_eligible
from projections.tournament.remaining import WithoutGold

_MODELS: Final = ("torch", "transformers", "peft")
_LITTLE_SPACE: Final = 1_000_000_000  # bytes
WAL_RESET_FIXED: Final = (3, 51, 3)  # sqlite.org/wal.html#walresetbug; broken since 3.7.0


Grade: TypeAlias = Literal["good", "beware", "bad"]


class Finding(NamedTuple):
    """The result of one check."""

    what: Shown[str]
    grade: Shown[Grade]
    says: Annotated[str, Column("Found")]


def findings(
    config: Path | None,
    ledger: Path,
    sqlite_version: tuple[int, ...],
    *,
    today: date,
    reach: Reach,
    open_dataset: OpenDataset = no_dataset,
) -> Iterator[Finding]:
    """Check what a run needs; nothing is changed, and nothing is sent that costs money.

    Args:
        config: The settings of the run; None: there are none.
        ledger: Where the ledger is or will be.
        sqlite_version: The version of Python's SQLite library.
        today: The date to compare the prices' with.
        reach: Asks a server whether it is there.
        open_dataset: Opens a bank on the Hub.
    """
    settings, prices, faults = _read(config)
    yield Finding("tourney", "good", VERSION)
    yield _sqlite(sqlite_version)
    yield _file_system(ledger)
    yield _disk(ledger.absolute().parent)
    yield _ledger(ledger)
    yield _models(is_needed=settings is not None and _has_weights(settings))
    yield from (_prices(sheet, today) for sheet in prices.sheets)
    servers = servers_of(settings) if settings else ()
    yield from _unpriced(servers, prices, settings.judge.max_usd if settings else None)
    yield from _keys(servers)
    yield from (_server(each, reach) for each in servers if _has_key(each))
    yield from (Finding("settings", "bad", fault) for fault in faults)
    if config is not None and settings is not None:
        folder = config.parent
        rubrics = {Dimension(rubric.dimension): folder / rubric.path for rubric in settings.rubrics}
        bank = cache(partial(bank_named, settings.prompts.bank, folder, open_dataset))
        yield from judging_findings(bank, rubrics)
        yield from _faulty_files(settings, folder, bank)


def _read(config: Path | None) -> tuple[Settings | None, PriceTable, Sequence[str]]:
    """Return the settings and their prices, or the faults in them; each may be missing."""
    if config is None:
        return None, price_table(), ()
    try:
        settings = read_settings(config, os.environ)
        named = settings.judge.prices
        return settings, price_table(None if named is None else config.parent / named), ()
    except ConfigurationError as error:
        return None, price_table(), error.faults


def _faulty_files(
    settings: Settings, folder: Path, read_prompts: Callable[[], Sequence[Prompt]]
) -> Iterator[Finding]:
    """Find what is wrong with files that the settings name beside the bank and its rubrics."""
    for what, read in _files(settings, folder, read_prompts):
        try:
            read()
        except ConfigurationError as error:
            yield Finding(what, "bad", error.faults[0])


def _files(
    settings: Settings, folder: Path, read_prompts: Callable[[], Sequence[Prompt]]
) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield what settings call a file, and how it is read."""
    jurors = {f"instructions of [[jury]] {judge.id!r}": judge for judge in settings.jury}
    for key, section in {"[judge] instructions": settings.judge, **jurors}.items():
        if section.instructions is not None:
            yield key, partial(read_instructions, folder / section.instructions, key)
    for evaluation in settings.evaluations:
        if evaluation.rubric is not None:
            path = folder / evaluation.rubric
            key = f"rubric of [[evaluations]] {evaluation.id!r}"
            yield key, partial(read_scoring_rubric, path, evaluation.id)
    recorded = [entrant for entrant in settings.entrants if isinstance(entrant, RecordedSection)]
    with suppress(TourneyError):  # of the bank; it was told
        prompts = read_prompts() if recorded else ()
        for entrant in recorded:
            key = f"answers of [[entrants]] {entrant.id!r}"
            yield key, partial(read_answers, entrant, folder, prompts)


def judging_findings(
    read_prompts: Callable[[], Sequence[Prompt]], rubrics: Mapping[Dimension, Path]
) -> Iterator[Finding]:
    """Find which dimensions nothing can be judged on, since prompts lack the gold answers."""
    try:
        prompts = read_prompts()
        read = [read_rubric(path, dimension) for dimension, path in rubrics.items()]
    except TourneyError as error:
        yield Finding("judging", "bad", str(error).partition("\n")[0])
        return
    lacking = [
        WithoutGold(
            rubric.dimension,
            sum(not is_eligible(rubric, prompt) for prompt in prompts),
            len(prompts),
        )
        for rubric in read
    ]
    is_vain = all(without_gold.n_prompts == without_gold.n_asked for without_gold in lacking)
    for note in gold_notes(lacking):
        yield Finding("judging", "bad" if is_vain else "beware", note)


def _unpriced(
    servers: Iterable[Server], prices: PriceTable, cap_usd: float | None
) -> Iterator[Finding]:
    """Find the models that cost money, or must be kept below a cap, and have no price."""
    for server in servers:
        is_capped = cap_usd is not None and not server.is_entrant
        for model in server.models:
            if prices.of(model) is None and (is_capped or server.keys):
                why = "so no cap can be kept" if is_capped else "so its cost is unknown"
                grade = _obstacle(server) if is_capped else "beware"
                says = f"{server.asked} has none, {why}; {no_price(model)}"
                yield Finding(f"price of {model}", grade, says)


def _obstacle(server: Server) -> Grade:
    return "beware" if server.is_juror else "bad"


def _has_key(server: Server) -> bool:
    """Say whether a key is set, if one is needed for certain."""
    return not server.keys or first_set(server.keys) is not None


def _server(server: Server, reach: Reach) -> Finding:
    what = f"server of {server.asked}"
    try:
        doubt = reach(server)
    except ProviderError as error:
        return Finding(what, _obstacle(server), error.why)
    except TourneyError as error:
        return Finding(what, _obstacle(server), str(error))
    return Finding(what, "beware" if doubt else "good", doubt or "answers")


def require_servers(servers: Iterable[Server], reach: Reach, tell: Tell) -> None:
    """Require that servers answer, before work is done that would be in vain without them.

    Raises:
        NoCredentials: One needs a key, or refuses it.
        ProviderError: One cannot be reached.
    """
    for server in servers:
        if (doubt := reach(server)) is not None:
            tell(f"{server.asked}: {doubt}")


def _keys(servers: Iterable[Server]) -> Iterator[Finding]:
    """Check that the API keys are set that are needed; no key itself is shown."""
    needing: dict[tuple[str, ...], list[Server]] = {ANTHROPIC_KEYS: []}
    for server in servers:
        if server.keys:
            needing.setdefault(server.keys, []).append(server)
    for names, asked in needing.items():
        yield _key("Anthropic key" if names == ANTHROPIC_KEYS else names[0], names, asked)


def _key(what: str, names: tuple[str, ...], needing: Sequence[Server]) -> Finding:
    """Check one key, which several judges may need."""
    if (name := first_set(names)) is not None:
        return Finding(what, "good", f"{name} is set")
    if not needing:
        return Finding(what, "good", "not set; only Anthropic's models need it")
    asked = ", ".join(server.asked for server in needing)
    needs = f"{asked} {'need' if len(needing) > 1 else 'needs'} it"
    grade: Grade = "beware" if all(server.is_juror for server in needing) else "bad"
    return Finding(what, grade, f"not set, but {needs}; export {names[0]}=...")


def _sqlite(version: tuple[int, ...]) -> Finding:
    name = ".".join(map(str, version))
    if version >= WAL_RESET_FIXED:
        return Finding("SQLite", "good", name)
    return Finding(
        "SQLite",
        "beware",
        f"{name} has the WAL-reset bug, fixed in 3.51.3: two programs that write at the same"
        " moment can damage the file. tourney's lock prevents that for its own processes; let"
        " no other program write to the ledger",
    )


def _file_system(ledger: Path) -> Finding:
    kind = foreign_kind(ledger)
    if kind is None:
        return Finding("file system", "good", "local, as far as tourney can tell")
    return Finding("file system", "bad", f"{kind}: keep the ledger on a local disk")


def _disk(folder: Path) -> Finding:
    try:
        n_free = shutil.disk_usage(folder).free
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return Finding("disk", "bad", f"{folder} cannot be written: {error}")
    enough: Grade = "good" if n_free > _LITTLE_SPACE else "beware"
    return Finding("disk", enough, f"{n_free / 1e9:.1f} GB free")


def _ledger(path: Path) -> Finding:
    try:
        with Ledger.read_only(path) as ledger:
            require_writable(path)
            require_one_name(path)
            require_own_schema(ledger.connection, path)
            require_sound(ledger)
            return Finding("ledger", "good", f"{path}, head {ledger.head}")
    except NoLedger:
        return Finding("ledger", "good", f"{path}: not created yet")
    except TourneyError as error:
        return Finding("ledger", "bad", str(error))


def missing_models() -> list[str]:
    """Return the packages for weights on this machine that are not installed."""
    return [name for name in _MODELS if find_spec(name) is None]


def _has_weights(settings: Settings) -> bool:
    """Say whether an entrant or a judge is weights on this machine."""
    loaders = {entrant.loader for entrant in settings.entrants}
    providers = {judge.provider for judge in (settings.judge, *settings.jury)}
    return bool(loaders & {"hf", "hydra"}) or "hf" in providers


def _models(*, is_needed: bool) -> Finding:
    missing = missing_models()
    if not missing:
        return Finding("models", "good", ", ".join(_MODELS))
    says = f"{', '.join(missing)} not installed"
    if is_needed:
        return Finding("models", "bad", f"{says}; pip install 'tourney-ledger[models]'")
    return Finding("models", "good", f"{says}; only weights on this machine need them")


def _prices(named: NamedSheet, today: date) -> Finding:
    says = f"{named.title}, {counted(named.sheet.age_days(today), 'day')} old: {named.path}"
    if named.sheet.is_stale(today):
        return Finding("prices", "beware", f"{says}; compare them with the provider's")
    return Finding("prices", "good", says)
