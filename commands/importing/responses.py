"""Use case: take in the responses that tap's scripts cached, so that they can be judged.

A cache names entrants and prompts by their ids alone. That its texts were made by the weights, the
settings and the prompts that are registered under those ids is the claim of whoever imports it;
each response keeps the digest of its file.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from commands.decisions.commands import ImportResponse, OpenTournament
from commands.decisions.decide import partial_response
from commands.decisions.recorder import Recorder, rehearse
from commands.errors import ConfigurationError, counted, first_lines, place_and_fault
from ledger.events.registration import Entrant
from ledger.events.responses import Diagnostics, ResponseGenerated
from ledger.events.values import Count, Probability
from ledger.identity import Digest, EntrantId, PromptId, digest_of_bytes
from projections.tournament.matches import PlannedResponse, planned_responses
from projections.tournament.state import Tournament


class CachedDiagnostics(msgspec.Struct, frozen=True):
    """How a cached response was made; of plain weights no head drafted, and no jury sat."""

    n_tokens_generated: Count  # the end of the text included
    seed: int | None = None
    draft_head_idx: Count | None = None
    bypass_jury: bool | None = None


class CachedResponse(msgspec.Struct, frozen=True):
    """A line of a cache; what else it says is not read."""

    entrant_id: EntrantId
    prompt_id: PromptId
    response_text: str
    p_correct: Probability | None
    diagnostics: CachedDiagnostics


class UnusableLine(Exception):
    """A line cannot be used; the message says why."""


def decode_line(line: bytes) -> CachedResponse:
    """Return what a line says.

    Raises:
        UnusableLine: It is no JSON, or a field is missing or wrong.
    """
    try:
        return msgspec.json.decode(line, type=CachedResponse)
    except msgspec.ValidationError as error:
        place, why = place_and_fault(error)
        raise UnusableLine(f"{place}: {why}" if place else why) from error
    except ValueError as error:  # a line that was cut off, above all
        raise UnusableLine(f"it is no JSON: {error}") from error


_Wanted: TypeAlias = Mapping[tuple[EntrantId, PromptId], PlannedResponse]


class FoundResponse(NamedTuple):
    """A response, and the line that it is from."""

    file: Path
    line: int  # from 1
    response: ResponseGenerated


class BadLine(NamedTuple):
    """A line that cannot be used, and why."""

    file: Path
    line: int  # from 1
    why: str


class ImportedResponses(NamedTuple):
    """What files held; of two lines on an entrant's response to a prompt the later counts."""

    new: Sequence[FoundResponse]
    known: Sequence[FoundResponse]  # the ledger has a response already, and keeps it
    bad: Sequence[BadLine]


def import_responses(
    recorder: Recorder, opening: OpenTournament, files: Sequence[Path], *, skip_bad: bool = False
) -> ImportedResponses:
    """Append the responses that the tournament lacks, all or none; open it, if it is not open.

    Args:
        recorder: Of the tournament.
        opening: What it is configured to be.
        files: Caches, the later the stronger.
        skip_bad: Whether to leave out lines that cannot be used.

    Raises:
        ConfigurationError: A file cannot be read, or lines cannot be used and are not to be left
            out; nothing was appended.
        LedgerError: The ledger cannot be written; nothing was appended.
    """
    imported = _read(files, rehearse(recorder.state, opening))
    if imported.bad and not skip_bad:
        refused = f"{counted(len(imported.bad), 'line')} cannot be used, and nothing is imported"
        remedy = "correct them, or leave them out with --skip-bad"
        raise ConfigurationError([f"{refused}; {remedy}", *bad_lines(imported.bad)])
    recorder.record(opening, *(ImportResponse(each.response) for each in imported.new))
    return imported


def bad_lines(bad: Sequence[BadLine]) -> Iterator[str]:
    """Say of the first lines why they cannot be used."""
    lines = [f"{each.file}:{each.line}: {each.why}" for each in bad]
    return first_lines(lines, len(bad), "line")


def _read(files: Sequence[Path], tournament: Tournament) -> ImportedResponses:
    prompts = [prompt.prompt_id for prompt in tournament.bank]
    wanted = {
        (cell.entrant.entrant_id, cell.prompt.prompt_id): cell
        for cell in planned_responses(tournament, prompts)
    }
    last: dict[tuple[EntrantId, PromptId], FoundResponse] = {}
    bad: list[BadLine] = []
    for file in files:
        for each in _lines(file, wanted):
            if isinstance(each, BadLine):
                bad.append(each)
            else:
                last[each.response.entrant_id, each.response.prompt_id] = each
    found, contradicted = _by_key(last.values())
    there = tournament.responses
    return ImportedResponses(
        new=[each for key, each in found.items() if key not in there],
        known=[each for key, each in found.items() if key in there],
        bad=[*bad, *contradicted],
    )


def _by_key(
    lines: Iterable[FoundResponse],
) -> tuple[Mapping[Digest, FoundResponse], Sequence[BadLine]]:
    """Return the first line on each response, and those that contradict it.

    Entrants of equal settings share a response, and so do prompts of equal text where no seed
    tells them apart.
    """
    found: dict[Digest, FoundResponse] = {}
    bad: list[BadLine] = []
    for each in lines:
        first = found.setdefault(each.response.response_key, each)
        if each.response.text != first.response.text:
            bad.append(_contradiction(each, first))
    return found, bad


def _contradiction(line: FoundResponse, first: FoundResponse) -> BadLine:
    of = first.response
    why = (
        f"it is the same response as {first.file}:{first.line}, of entrant {of.entrant_id!r} to"
        f" prompt {of.prompt_id!r}: the settings and the prompt's text are the same; but the"
        " response's text is another"
    )
    return BadLine(line.file, line.line, why)


def _lines(file: Path, wanted: _Wanted) -> Iterator[FoundResponse | BadLine]:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ConfigurationError([f"{file}: cannot be read: {error.strerror}"]) from error
    digest = digest_of_bytes(content)
    for number, line in enumerate(content.splitlines(), start=1):
        if line.strip():
            try:
                yield FoundResponse(file, number, _response(decode_line(line), wanted, digest))
            except UnusableLine as error:
                yield BadLine(file, number, str(error))


def _response(cached: CachedResponse, wanted: _Wanted, digest: Digest) -> ResponseGenerated:
    """Return what a line says, as the response to the registered prompt."""
    cell, said = _cell(cached, wanted), cached.diagnostics
    is_cut = said.n_tokens_generated >= cell.entrant.max_new_tokens
    return partial_response(cell)(
        text=cached.response_text,
        finish_reason="length" if is_cut else "stop",  # an end in the very last token looks cut
        n_prompt_tokens=None,
        n_generated_tokens=said.n_tokens_generated,
        elapsed_s=None,
        p_correct=cached.p_correct,
        diagnostics=_diagnostics(said, cell.entrant),
        imported_from=digest,
    )


def _cell(cached: CachedResponse, wanted: _Wanted) -> PlannedResponse:
    """Return the place that a line is for; a seed that differs belies it."""
    cell = wanted.get((cached.entrant_id, cached.prompt_id))
    if cell is None:
        is_entrant = any(entrant_id == cached.entrant_id for entrant_id, _ in wanted)
        what = f"prompt {cached.prompt_id!r}" if is_entrant else f"entrant {cached.entrant_id!r}"
        raise UnusableLine(f"the tournament has no {what}")
    if cached.diagnostics.seed not in {None, cell.seed}:
        seeds = f"{cached.diagnostics.seed}, and the tournament's is {cell.seed}"
        remedy = "tap's follow from [generation] seed = 0"
        raise UnusableLine(f"diagnostics.seed is {seeds}; {remedy}")
    return cell


def _diagnostics(said: CachedDiagnostics, entrant: Entrant) -> Diagnostics | None:
    """Return what a Hydra's line says of its heads; that it has any must not contradict the roster.

    The lists of its tokens are not in a cache.
    """
    bypass = entrant.hydra.bypass_jury if entrant.hydra else None
    if said.bypass_jury != bypass or (said.draft_head_idx is None) != (bypass is None):
        found = f"draft_head_idx {said.draft_head_idx}, bypass_jury {said.bypass_jury}"
        expected = "no Hydra" if bypass is None else f"a Hydra whose bypass_jury is {bypass}"
        raise UnusableLine(
            f"diagnostics say {found}, and entrant {entrant.entrant_id!r} is {expected}"
        )
    if said.draft_head_idx is None or said.bypass_jury is None:
        return None
    return Diagnostics(draft_head_idx=said.draft_head_idx, bypass_jury=said.bypass_jury)
