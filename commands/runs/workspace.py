"""A tournament to work on: its settings, its ledger, and all that tournament.toml names, checked.

`opening_of` reads and checks what is named, ready to be registered.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from commands.auditing.soundness import require_sound
from commands.decisions.commands import OpenTournament
from commands.decisions.recorder import Recorder
from commands.entrants.files import read_entrant
from commands.entrants.weights import FetchSnapshot
from commands.errors import ConfigurationError, WeightsError, counted
from commands.importing.answers import recorded_entrant
from commands.importing.bank import OpenDataset, bank_named, no_dataset
from commands.judging.panel import panel_of
from commands.ports import Tell
from commands.settings.inputs import (
    read_instructions,
    read_rubric,
    read_scoring_rubric,
    read_text,
)
from commands.settings.reader import read_settings
from commands.settings.schema import RubricSection, Settings
from commands.settings.sections import (
    AnyEntrantSection,
    EvaluationSection,
    RecordedSection,
)
from commands.settings.toml import allows_network
from commands.spending.price_table import price_table
from ledger.errors import TourneyError
from ledger.events.ratings import Mode
from ledger.events.registration import (
    Entrant,
    EntrantRegistered,
    JudgeRegistered,
    JudgeSettings,
    Prompt,
    PromptRegistered,
    Reference,
    Registered,
    Registration,
    Rubric,
    RubricRegistered,
    TournamentOpened,
)
from ledger.identity import (
    Digest,
    Dimension,
    EntrantId,
    PromptId,
    StreamId,
    canonical_json,
    digest_of_bytes,
)
from ledger.storage.lock import Holder
from ledger.store import Ledger
from projections.tournament.bank import (
    first_samples,
    is_eligible,
    pilot_prompts,
    pilot_size,
    proportional_strata,
)
from projections.tournament.designs import fewest_linking, is_linked


@dataclass(frozen=True)
class Workspace:
    """The settings and the checked inputs of a tournament, before anything is recorded."""

    settings: Settings
    folder: Path  # of the settings; their relative paths start here
    ledger: Path
    opening: OpenTournament

    @property
    def stream(self) -> StreamId:
        """The tournament's stream."""
        return StreamId(self.settings.tournament.id)

    @contextmanager
    def recorder(self, tell: Tell) -> Iterator[Recorder]:
        """Open the ledger for this command alone, and close it at the end.

        A second command on the same ledger waits until the first is done, so that nothing is paid
        for twice.

        Raises:
            AuditDisagrees: The ledger is damaged.
        """
        with open_alone(self.ledger, tell) as ledger:
            require_sound(ledger)
            yield Recorder(ledger, self.stream)


@contextmanager
def open_alone(path: Path, tell: Tell) -> Iterator[Ledger]:
    """Open a ledger for one command alone: a second one waits until the first is done."""
    with open_for_writing(path, tell) as ledger, ledger.alone(_telling_whom(tell)):
        yield ledger


def open_for_writing(path: Path, tell: Tell) -> Ledger:
    """Open a ledger for writing; tell the user which process it has to wait for."""
    network = allows_network(os.environ)
    return Ledger.open(path, on_wait=_telling_whom(tell), allow_network=network)


def _telling_whom(tell: Tell) -> Callable[[Holder | None], None]:
    return lambda holder: tell(
        f"waiting for {holder or 'another process'}, which is using the same ledger"
    )


def open_workspace(
    config: Path,
    ledger: Path | None,
    versions: Sequence[tuple[str, str]],
    *,
    fetch: FetchSnapshot | None = None,
    open_dataset: OpenDataset = no_dataset,
) -> Workspace:
    """Read the settings and everything that they name.

    Args:
        config: The settings file.
        ledger: Replaces the ledger that the settings name.
        versions: Packages and their versions, recorded with the opening.
        fetch: Resolves names of weights on the Hub; None: only folders are found.
        open_dataset: Opens a bank on the Hub.

    Raises:
        ConfigurationError: Something is missing or wrong; the ledger is not touched.
    """
    settings = read_settings(config, os.environ)
    folder = config.parent
    return Workspace(
        settings=settings,
        folder=folder,
        ledger=ledger or folder / settings.tournament.ledger,
        opening=opening_of(settings, folder, versions, fetch, open_dataset),
    )


Named = TypeVar("Named")
Read = TypeVar("Read")


def opening_of(
    settings: Settings,
    folder: Path,
    versions: Sequence[tuple[str, str]],
    fetch: FetchSnapshot | None = None,
    open_dataset: OpenDataset = no_dataset,
) -> OpenTournament:
    """Read the bank, rubrics, instructions and weights; return the command to register them.

    Nothing is recorded yet. Relative paths start from the folder; `fetch` resolves names of weights
    on the Hub, and `open_dataset` opens a bank on the Hub.

    Raises:
        ConfigurationError: Files are missing or wrong; every fault is listed.
    """
    faults: list[str] = []
    samples = settings.generation.samples
    banks = _read_each(
        lambda bank: bank_named(bank, folder, open_dataset, samples),
        [settings.prompts.bank],
        faults,
    )
    rubrics = _read_each(lambda rubric: _rubric(rubric, settings, folder), settings.rubrics, faults)
    scored = [evaluation for evaluation in settings.evaluations if evaluation.rubric is not None]
    scoring = _read_each(
        lambda evaluation: _scoring_rubric(evaluation, settings, folder), scored, faults
    )
    named, prices = settings.judge.instructions, settings.judge.prices
    instructions = _read_each(read_instructions, [named and folder / named], faults)
    bank = banks[0] if banks else ()
    entrants = _read_each(
        lambda entrant: _entrant(entrant, settings, folder, fetch, bank),
        [
            entrant
            for entrant in settings.entrants
            if bank or not isinstance(entrant, RecordedSection)
        ],
        faults,
    )
    panels = _read_each(lambda each: panel_of(each, folder, fetch), [settings], faults)
    _read_each(lambda path: _check_prices(folder / path), filter(None, [prices]), faults)
    if faults:
        raise ConfigurationError([*dict.fromkeys(faults)])  # several entrants may share a file
    registrations = _registrations(banks[0], (*rubrics, *scoring), entrants, panels[0])
    configuration = canonical_json(settings.model_dump(mode="json"))
    opening = TournamentOpened(
        opening=1,
        tournament_id=settings.tournament.id,
        configuration=configuration.decode(),
        configuration_digest=digest_of_bytes(configuration),
        entrants=_references(registrations, EntrantRegistered),
        prompts=_references(registrations, PromptRegistered),
        rubrics=tuple(
            Reference(label=rubric.dimension, digest=rubric.content_digest) for rubric in rubrics
        ),
        judges=_references(registrations, JudgeRegistered),
        instructions=instructions[0],
        generation_seed=settings.generation.seed,
        versions=tuple(versions),
    )
    return OpenTournament(opening, registrations)


def notes_on_twins(opening: OpenTournament) -> Iterator[str]:
    """Yield a note on each entrant that is an earlier one but for its id."""
    first: dict[Digest, EntrantId] = {}
    for event in opening.registrations:
        if isinstance(event, EntrantRegistered):
            entrant = event.entrant
            twin = first.setdefault(entrant.digest, entrant.entrant_id)
            if twin != entrant.entrant_id:
                same = f"{entrant.entrant_id} has the same configuration as {twin}"
                yield f"{same}, so it gets the same responses; change it, or remove it"


def _read_each(
    read: Callable[[Named], Read], named: Iterable[Named], faults: list[str]
) -> tuple[Read, ...]:
    """Read what can be read, and collect the faults of the rest."""
    things = []
    for each in named:
        try:
            things.append(read(each))
        except TourneyError as error:
            faults.append(str(error))
    return tuple(things)


def _check_prices(path: Path) -> None:
    """Read a price table, although registering needs no prices: all faults are told at once."""
    read_text(path, "price table", key="[judge] prices")
    price_table(path)


def _rubric(section: RubricSection, settings: Settings, folder: Path) -> Rubric:
    rubric = read_rubric(folder / section.path, Dimension(section.dimension))
    judges = {"[judge]": settings.judge} | {
        f"[[jury]] {judge.id!r}": judge for judge in settings.jury
    }
    faults = [
        f"[[rubrics]] {rubric.dimension!r} does not use gold answers, but provider 'reference' of"
        f" {name} needs them; set needs_gold = true in the rubric, or set another `provider` in"
        f" {name} ('reference' is the default)"
        for name, judge in judges.items()
        if judge.provider == "reference" and not rubric.needs_gold
    ]
    if faults:
        raise ConfigurationError(faults)
    return rubric


def _scoring_rubric(section: EvaluationSection, settings: Settings, folder: Path) -> Rubric:
    assert section.rubric is not None  # noqa: S101  # only such sections are read
    rubric = read_scoring_rubric(folder / section.rubric, section.id)
    named = next((judge for judge in settings.jury if judge.id == section.judge), settings.judge)
    if named.provider == "reference" and not rubric.needs_gold:
        fault = (
            f"evaluation {section.id!r}: {section.rubric} does not use expected answers, which the"
            " judge of provider 'reference' needs; set needs_gold = true, or name another judge"
        )
        raise ConfigurationError([fault])
    return rubric


def _entrant(
    section: AnyEntrantSection,
    settings: Settings,
    folder: Path,
    fetch: FetchSnapshot | None,
    bank: Sequence[Prompt],
) -> Entrant:
    if isinstance(section, RecordedSection):
        return recorded_entrant(section, folder, bank)
    try:
        return read_entrant(section, settings.generation, folder, fetch)
    except WeightsError as error:
        raise ConfigurationError([f"entrant {section.id!r}: {error}"]) from error


def _registrations(
    prompts: Iterable[Prompt],
    rubrics: Iterable[Rubric],
    entrants: Iterable[Entrant],
    panel: Iterable[JudgeSettings],
) -> tuple[Registration, ...]:
    return (
        *(PromptRegistered(prompt=prompt, digest=prompt.content_digest) for prompt in prompts),
        *(RubricRegistered(rubric=rubric, digest=rubric.content_digest) for rubric in rubrics),
        *(
            EntrantRegistered(entrant=entrant, digest=entrant.content_digest)
            for entrant in entrants
        ),
        *(JudgeRegistered(judge=judge, digest=judge.content_digest) for judge in panel),
    )


def _references(
    registrations: Iterable[Registration], kind: type[Registered]
) -> tuple[Reference, ...]:
    return tuple(event.reference for event in registrations if isinstance(event, kind))


def prompts_to_judge(
    opening: OpenTournament, settings: Settings, mode: Mode
) -> tuple[PromptId, ...]:
    """Return a mode's prompts, where the design links all entrants on them.

    Raises:
        ConfigurationError: The pilot draws more prompts than the bank has, or no chain of pairs
            leads from some entrant to another: their ratings would not compare.
    """
    bank, roster, seed = opening.bank, opening.roster, settings.generation.seed
    selected, sparse = selected_prompts(bank, settings, mode), settings.judging.sparse
    if sparse is None:
        return selected
    chosen = frozenset(selected)
    faults = []
    for rubric in opening.dimensions:
        judged = {
            prompt.prompt_id
            for prompt in bank
            if prompt.prompt_id in chosen and is_eligible(rubric, prompt)
        }
        if judged and not is_linked(roster, bank, sparse, seed, judged):
            fewest = fewest_linking(roster, bank, seed, judged)
            faults.append(
                f"[judging] sparse = {sparse} does not link all {len(roster)} entrants on"
                f" {counted(len(judged), 'prompt')} of {rubric.dimension}, so their ratings would"
                f" not compare; set it to {fewest} or more, or judge more prompts"
            )
    if faults:
        raise ConfigurationError(faults)
    return selected


def selected_prompts(
    bank: Sequence[Prompt], settings: Settings, mode: Mode
) -> tuple[PromptId, ...]:
    """Return a mode's prompts in bank order: the whole bank, or the pilot's subset.

    All samples of a prompt belong to the subset, or none.

    Raises:
        ConfigurationError: The pilot draws more prompts than the bank has.
    """
    if mode == "headline":
        return tuple(prompt.prompt_id for prompt in bank)
    pilot = settings.pilot
    is_said = "size" in pilot.model_fields_set
    samples = settings.generation.samples
    firsts = first_samples(bank, samples)
    size = pilot.size if is_said else pilot_size(len(firsts))
    strata = pilot.strata or proportional_strata(firsts, size)
    try:
        return pilot_prompts(bank, strata, seed=pilot.seed, n_samples=samples)
    except ValueError as error:
        raise ConfigurationError([str(error)]) from error
