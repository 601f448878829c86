"""Taking in the responses that tap's scripts cached: all or none, and once."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from commands.decisions.recorder import Recorder
from commands.errors import ConfigurationError
from commands.importing.formats.rows import BadRow
from commands.importing.responses import ImportedResponses, bad_lines, import_responses
from ledger.events.registration import Entrant
from ledger.events.responses import Diagnostics, ResponseGenerated
from ledger.identity import digest_of_bytes
from ledger.store import Ledger
from projections.tournament.matches import prompt_seed
from projections.tournament.remaining import missing_responses
from tests.support.builders.commands import P1, P2, open_tournament
from tests.support.builders.events import entrant, hydra, opened, prompt
from tests.support.builders.games import generated

BASE = entrant("base")
POE = entrant("poe", loader="hydra", hydra=hydra())
ROSTER = (BASE, POE)
N_OPENING = 7  # events: the opening, two prompts, a rubric, two entrants, a judge
OF_BASE = {"draft_head_idx": None, "bypass_jury": None, "n_resampled": 0}
OF_POE = {"draft_head_idx": 3, "bypass_jury": False, "n_resampled": 2}


def record(who: str = "base", what: str = P1, **fields: object) -> dict[str, object]:
    """Return a line of a cache as tap's scripts write it; fields of diagnostics are found."""
    heads = OF_POE if who == "poe" else OF_BASE
    diagnostics = {"seed": prompt_seed(P1 if what == P1 else P2), "n_tokens_generated": 9, **heads}
    given = {"entrant_id": who, "prompt_id": what, "response_text": f"{who} on {what}"}
    rest = {"p_correct": None, "timestamp": "2026-04-27T12:00:00+00:00"}
    inner = {name: fields.pop(name) for name in list(fields) if name in diagnostics}
    return {**given, **rest, "diagnostics": diagnostics | inner, **fields}


def write(path: Path, *records: object, torn: str = "") -> Path:
    """Write a cache, whose last line may be torn."""
    lines = "".join(f"{json.dumps(each)}\n" for each in records)
    path.write_text(lines + torn, encoding="utf-8")
    return path


def take_in(
    recorder: Recorder,
    *files: Path,
    skip_bad: bool = False,
    roster: Sequence[Entrant] = ROSTER,
) -> ImportedResponses:
    """Import caches into a tournament of two prompts."""
    opening = open_tournament(opened(prompts=[prompt(P1), prompt(P2)], entrants=roster))
    return import_responses(recorder, opening, files, skip_bad=skip_bad)


def responses(recorder: Recorder) -> dict[tuple[str, str], ResponseGenerated]:
    """Return the responses on record, by entrant and prompt."""
    found = recorder.state.responses.values()
    return {(each.entrant_id, each.prompt_id): each for each in found}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Give the place of a cache."""
    return tmp_path / "responses_base.jsonl"


def test_a_response_is_recorded_as_the_registered_entrants(recorder: Recorder, file: Path) -> None:
    """So nothing is owed any more; what a cache does not say is not known."""
    write(file, record(p_correct=0.75))

    take_in(recorder, file, roster=[BASE])

    (response,) = responses(recorder).values()
    (left,) = missing_responses(recorder.state, [P1, P2])
    assert left.prompt.prompt_id == P2
    assert (response.text, response.p_correct, response.seed) == ("base on p1", 0.75, 2053764746)
    assert (response.n_prompt_tokens, response.elapsed_s) == (None, None)
    assert response.diagnostics is None
    assert response.imported_from == digest_of_bytes(file.read_bytes())


def test_a_hydras_heads_are_kept_as_far_as_they_are_told(recorder: Recorder, file: Path) -> None:
    """A cache says nothing of single tokens."""
    write(file, record("poe"))

    take_in(recorder, file)

    (response,) = responses(recorder).values()
    assert response.diagnostics == Diagnostics(draft_head_idx=3, bypass_jury=False)


@pytest.mark.parametrize(
    ("n_tokens", "reason"), [(31, "stop"), (32, "length"), (33, "length"), (0, "stop")]
)
def test_a_text_as_long_as_the_limit_was_cut(
    recorder: Recorder, file: Path, n_tokens: int, reason: str
) -> None:
    """A cache does not say why a text ends, only how long it is."""
    write(file, record(n_tokens_generated=n_tokens))

    take_in(recorder, file)

    (response,) = responses(recorder).values()
    assert (response.n_generated_tokens, response.finish_reason) == (n_tokens, reason)


def test_a_later_line_replaces_an_earlier(recorder: Recorder, file: Path) -> None:
    """As the scripts read it: they append, and a file behind another goes on with it."""
    write(file, record(response_text="first"), record(response_text="second"))
    other = write(file.with_name("more.jsonl"), record(response_text="third"))

    imported = take_in(recorder, file, other)

    assert responses(recorder)["base", P1].text == "third"
    assert [each.file for each in imported.new] == [other]


def test_the_mark_of_an_editor_on_windows_spoils_no_line(recorder: Recorder, file: Path) -> None:
    """The first line is a response as well."""
    write(file, record())
    file.write_text(file.read_text(encoding="utf-8"), encoding="utf-8-sig")

    assert len(take_in(recorder, file).new) == 1


def test_an_import_made_twice_is_made_once(ledger: Ledger, recorder: Recorder, file: Path) -> None:
    """A cache that has grown since adds what it grew by."""
    write(file, record(), record("poe"))
    take_in(recorder, file)
    write(file, record(), record("poe"), record(what=P2))

    imported = take_in(recorder, file)

    assert (len(imported.new), len(imported.known)) == (1, 2)
    assert take_in(recorder, file).new == []
    assert ledger.head.position == N_OPENING + 3


def test_a_response_that_was_generated_stays(recorder: Recorder, file: Path) -> None:
    """It is known what made it; verdicts may have been paid for it."""
    generated(recorder, opened(prompts=[prompt(P1), prompt(P2)], entrants=ROSTER))
    write(file, record(response_text="other"))

    imported = take_in(recorder, file)

    assert (len(imported.new), len(imported.known)) == (0, 1)
    assert responses(recorder)["base", P1].imported_from is None


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (record("zoe"), "the tournament has no entrant 'zoe'"),
        (record(what="p9"), "the tournament has no prompt 'p9'"),
        (record(seed=7), "diagnostics.seed is 7, but the tournament's is 2053764746; tap's seeds"),
        (record("poe", draft_head_idx=None), "say draft_head_idx None, bypass_jury False, but ent"),
        (record("poe", bypass_jury=None), "but entrant 'poe' is a Hydra whose bypass_jury is Fals"),
        (record("poe", bypass_jury=True), "but entrant 'poe' is a Hydra whose bypass_jury is Fals"),
        (record(draft_head_idx=1), "but entrant 'base' is not a Hydra"),
        (record(p_correct=1.5), "p_correct: must be at most 1"),
        (record(p_correct=float("nan")), "not JSON"),
        (
            record(n_tokens_generated=None),
            "diagnostics.n_tokens_generated: must be a whole number, not null",
        ),
        (record(response_text="\ud800"), "not JSON"),
        (record(diagnostics={}), "diagnostics: 'n_tokens_generated' is missing"),
        ({}, "'entrant_id' is missing"),
        ([], "must be an object, not a list"),
    ],
)
def test_one_bad_line_refuses_all_files(
    ledger: Ledger, recorder: Recorder, file: Path, bad: object, why: str
) -> None:
    """By its place and fault; the tournament is not even opened."""
    good = write(file.with_name("good.jsonl"), record())
    write(file, record(what=P2), bad)

    with pytest.raises(ConfigurationError) as caught:
        take_in(recorder, good, file)

    summary, fault = caught.value.faults
    assert summary.startswith("1 line cannot be imported; nothing was imported; correct")
    assert fault.startswith(f"{file}:2: ")
    assert why in fault
    assert ledger.head.position == 0


def test_a_torn_last_line_can_be_left_out(recorder: Recorder, file: Path) -> None:
    """The scripts were killed while they wrote it; empty lines are none."""
    write(file, record(), torn='\n{"entrant_id": "ba')

    imported = take_in(recorder, file, skip_bad=True)

    assert [(each.line, each.why) for _, each in imported.bad] == [
        (3, "not JSON: Input data was truncated")
    ]
    assert responses(recorder).keys() == {("base", P1)}


def test_a_seed_that_is_not_told_is_not_compared(recorder: Recorder, file: Path) -> None:
    """Caches were written before seeds were."""
    write(file, record(seed=None))

    assert len(take_in(recorder, file).new) == 1


def test_entrants_of_equal_settings_share_a_response(recorder: Recorder, file: Path) -> None:
    """Content names it, whoever's line it is on."""
    alias = entrant("alias", weights_digest=BASE.weights_digest)
    write(file, record(response_text="both"), record("alias", response_text="both"))

    imported = take_in(recorder, file, roster=[BASE, alias])

    assert [each.response.text for each in imported.new] == ["both"]
    assert len(missing_responses(recorder.state, [P1, P2])) == 1


TWICE = (prompt(P1), prompt(P2, text=prompt(P1).text))


def test_one_response_said_twice_must_be_one_text(
    ledger: Ledger, recorder: Recorder, file: Path
) -> None:
    """Who decodes greedily answers one text in one way: it is not known which of the two it is."""
    opening = open_tournament(opened(prompts=TWICE, entrants=[BASE]))
    other = write(file.with_name("more.jsonl"), record(what=P2))
    write(file, record())

    with pytest.raises(ConfigurationError) as caught:
        import_responses(recorder, opening, [file, other])

    assert caught.value.faults[1] == (
        f"{other}:1: it contradicts {file}:1 (entrant 'base', prompt 'p1'): the settings and the"
        " prompt are the same, but the response's text differs"
    )
    assert ledger.head.position == 0


def test_of_two_texts_for_one_response_the_first_can_be_kept(
    recorder: Recorder, file: Path
) -> None:
    """Half precision may change a token with the batch, and nothing can be corrected there."""
    opening = open_tournament(opened(prompts=TWICE, entrants=[BASE]))
    write(file, record(), record(what=P2))

    imported = import_responses(recorder, opening, [file], skip_bad=True)

    assert [each.response.text for each in imported.new] == ["base on p1"]
    assert [each.line for _, each in imported.bad] == [2]


def test_what_was_said_anew_of_one_response_contradicts_nothing(
    recorder: Recorder, file: Path
) -> None:
    """The scripts append: of each prompt the last line counts, and only those are compared."""
    opening = open_tournament(opened(prompts=TWICE, entrants=[BASE]))
    old = [record(what=each, response_text="old") for each in (P1, P2)]
    new = [record(what=each, response_text="new") for each in (P1, P2)]
    write(file, *old, *new)

    imported = import_responses(recorder, opening, [file])

    assert [each.response.text for each in imported.new] == ["new"]


def test_a_file_that_cannot_be_read_is_named(
    ledger: Ledger, recorder: Recorder, file: Path
) -> None:
    """Nothing is appended of the others."""
    good = write(file.with_name("good.jsonl"), record())

    with pytest.raises(ConfigurationError, match=r"responses_base\.jsonl: cannot be read: No such"):
        take_in(recorder, good, file)

    assert ledger.head.position == 0


def test_the_first_bad_lines_are_listed_and_the_others_counted(file: Path) -> None:
    """Of a file of another kind every line is bad."""
    bad = [(file, BadRow(line, "why")) for line in range(1, 24)]

    lines = list(bad_lines(bad))

    assert len(lines) == 21
    assert lines[0] == f"{file}:1: why"
    assert lines[-1] == "... and 3 lines more"
