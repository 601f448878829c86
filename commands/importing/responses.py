"""Use case of `tourney import responses`: append responses that tap's scripts cached.

A cache identifies entrants and prompts by id only. tourney cannot check that its texts come from
the weights, settings and prompts registered under those ids, so each response records the digest
of its file.
"""

from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from commands.decisions.commands import OpenTournament, RecordFact
from commands.decisions.recorder import Recorder, rehearse
from commands.errors import ConfigurationError, counted, first_lines, place_and_fault
from commands.importing.formats.files import reading
from commands.importing.formats.rows import BadRow, InvalidFields
from ledger.events.registration import Entrant
from ledger.events.responses import Diagnostics, ResponseGenerated
from ledger.events.values import Count, Probability
from ledger.identity import Digest, EntrantId, PromptId, digest_of_bytes
from projections.tournament.matches import PlannedResponse, planned_responses
from projections.tournament.state import Tournament


class CachedDiagnostics(msgspec.Struct, frozen=True):
    """How a cached response was made; only a Hydra has a draft head and a jury."""

    n_tokens_generated: Count  # including the end token
    seed: int | None = None
    draft_head_idx: Count | None = None
    bypass_jury: bool | None = None


class CachedResponse(msgspec.Struct, frozen=True):
    """A line of a cache; other fields are ignored."""

    entrant_id: EntrantId
    prompt_id: PromptId
    response_text: str
    p_correct: Probability | None
    diagnostics: CachedDiagnostics


def _decoded(line: bytes) -> CachedResponse:
    try:
        return msgspec.json.decode(line, type=CachedResponse)
    except msgspec.ValidationError as error:
        place, why = place_and_fault(error)
        raise InvalidFields(f"{place}: {why}" if place else why) from error
    except ValueError as error:  # most often a line that was cut off
        raise InvalidFields(f"not JSON: {error}") from error


_Cells: TypeAlias = Mapping[tuple[EntrantId, PromptId], PlannedResponse]


class FoundResponse(NamedTuple):
    """A response, and its line in a file."""

    file: Path
    line: int  # from 1
    response: ResponseGenerated


class ImportedResponses(NamedTuple):
    """The responses in the files; of two lines for one response, the later counts."""

    new: Sequence[FoundResponse]
    known: Sequence[FoundResponse]  # the ledger keeps the response that it has
    bad: Sequence[tuple[Path, BadRow]]
    empty: Sequence[Path]  # files without a line


def import_responses(
    recorder: Recorder, opening: OpenTournament, files: Sequence[Path], *, skip_bad: bool = False
) -> ImportedResponses:
    """Append the responses that the tournament lacks, all or none; open it if necessary.

    Args:
        recorder: Records the tournament's events.
        opening: The configured tournament.
        files: The caches; later files override earlier ones.
        skip_bad: Whether to skip lines that cannot be imported.

    Raises:
        ConfigurationError: A file cannot be read, or lines cannot be imported and are not to be
            skipped; nothing was appended.
        LedgerError: The ledger cannot be written; nothing was appended.
    """
    imported = _read(files, rehearse(recorder.state, opening))
    if imported.bad and not skip_bad:
        refused = f"{counted(len(imported.bad), 'line')} cannot be imported; nothing was imported"
        remedy = "correct them, or use --skip-bad to skip them"
        raise ConfigurationError([f"{refused}; {remedy}", *bad_lines(imported.bad)])
    recorder.record(opening, *(RecordFact(response.response) for response in imported.new))
    return imported


def bad_lines(bad: Sequence[tuple[Path, BadRow]]) -> Iterator[str]:
    """Yield one line for each of the first bad lines, with the reason."""
    lines = [f"{file}:{line}: {why}" for file, (line, why, _) in bad]
    return first_lines(lines, len(bad), "line")


def _read(files: Sequence[Path], tournament: Tournament) -> ImportedResponses:
    prompts = [prompt.prompt_id for prompt in tournament.bank]
    registered = {
        (cell.entrant.entrant_id, cell.prompt.prompt_id): cell
        for cell in planned_responses(tournament, prompts)
    }
    last: dict[tuple[EntrantId, PromptId], FoundResponse] = {}
    bad: list[tuple[Path, BadRow]] = []
    empty: list[Path] = []
    for file in files:
        lines = [*_lines(file, registered)]
        if not lines:
            empty.append(file)
        for line in lines:
            if isinstance(line, BadRow):
                bad.append((file, line))
            else:
                last[line.response.entrant_id, line.response.prompt_id] = line
    found, contradicted = _by_key(last.values())
    there = tournament.responses
    return ImportedResponses(
        new=[each for key, each in found.items() if key not in there],
        known=[each for key, each in found.items() if key in there],
        bad=[*bad, *contradicted],
        empty=empty,
    )


def _by_key(
    lines: Iterable[FoundResponse],
) -> tuple[Mapping[Digest, FoundResponse], Sequence[tuple[Path, BadRow]]]:
    """Return the first line of each response, by response key, and the lines that contradict it.

    Entrants with equal settings share a response; so do prompts with equal text and seed.
    """
    found: dict[Digest, FoundResponse] = {}
    bad: list[tuple[Path, BadRow]] = []
    for line in lines:
        first = found.setdefault(line.response.response_key, line)
        if line.response.text != first.response.text:
            of = first.response
            why = (
                f"it contradicts {first.file}:{first.line} (entrant {of.entrant_id!r}, prompt"
                f" {of.prompt_id!r}): the settings and the prompt are the same, but the response's"
                " text differs"
            )
            bad.append((line.file, BadRow(line.line, why)))
    return found, bad


def _lines(file: Path, registered: _Cells) -> Iterator[FoundResponse | BadRow]:
    with reading(file):
        content = file.read_bytes()
    digest = digest_of_bytes(content)
    for number, line in enumerate(content.removeprefix(BOM_UTF8).splitlines(), start=1):
        if line.strip():
            try:
                yield FoundResponse(file, number, _response(_decoded(line), registered, digest))
            except InvalidFields as error:
                yield BadRow(number, str(error))


def _response(cached: CachedResponse, registered: _Cells, digest: Digest) -> ResponseGenerated:
    """Return a line as the response of a registered entrant to a registered prompt."""
    cell, diagnostics = _cell(cached, registered), cached.diagnostics
    is_cut = diagnostics.n_tokens_generated >= cell.entrant.max_new_tokens
    return cell.made(
        text=cached.response_text,
        finish_reason="length" if is_cut else "stop",  # or it ended with the last allowed token
        n_prompt_tokens=None,
        n_generated_tokens=diagnostics.n_tokens_generated,
        elapsed_s=None,
        p_correct=cached.p_correct,
        diagnostics=_diagnostics(diagnostics, cell.entrant),
        imported_from=digest,
    )


def _cell(cached: CachedResponse, registered: _Cells) -> PlannedResponse:
    """Return the registered entrant and prompt of a line, after checking the seed."""
    cell = registered.get((cached.entrant_id, cached.prompt_id))
    if cell is None:
        is_entrant = any(entrant_id == cached.entrant_id for entrant_id, _ in registered)
        what = f"prompt {cached.prompt_id!r}" if is_entrant else f"entrant {cached.entrant_id!r}"
        raise InvalidFields(f"the tournament has no {what}")
    if cached.diagnostics.seed not in {None, cell.seed}:
        seeds = f"{cached.diagnostics.seed}, but the tournament's is {cell.seed}"
        remedy = "tap's seeds need [generation] seed = 0"
        raise InvalidFields(f"diagnostics.seed is {seeds}; {remedy}")
    return cell


def _diagnostics(said: CachedDiagnostics, entrant: Entrant) -> Diagnostics | None:
    """Return a Hydra's diagnostics, if they fit the entrant; a cache has none per token."""
    bypass = entrant.hydra.bypass_jury if entrant.hydra else None
    if said.bypass_jury != bypass or (said.draft_head_idx is None) != (bypass is None):
        found = f"draft_head_idx {said.draft_head_idx}, bypass_jury {said.bypass_jury}"
        expected = "not a Hydra" if bypass is None else f"a Hydra whose bypass_jury is {bypass}"
        raise InvalidFields(
            f"diagnostics say {found}, but entrant {entrant.entrant_id!r} is {expected}"
        )
    if said.draft_head_idx is None or said.bypass_jury is None:
        return None
    return Diagnostics(draft_head_idx=said.draft_head_idx, bypass_jury=said.bypass_jury)
