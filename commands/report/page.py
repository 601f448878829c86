"""The page itself: what is shown, put into the templates beside this module.

One file without a request: the style and the script stand in it, and the page's own policy lets
run only what has their hashes. Whatever an expression of a template shows is made visible, then
escaped.
"""

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final, NamedTuple

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from commands.reading.rows import metric_rows
from commands.report.answers import NOT_OF_ANSWERS, grids_of, shown_answers
from commands.report.battles import WhichBattles, battles_of
from commands.report.finding import (
    LeadFinding,
    caveats_of,
    caveats_on_empty,
    finding_of,
    finding_on_labelled,
)
from commands.report.judges import (
    MEANINGS,
    calibration_of,
    diagram_of,
    fragile_pairs,
    health_of,
    interval_of,
    named_prompts,
    sign_of,
    value_of,
)
from commands.report.money import ValueMap, spending_of, value_map_of
from commands.report.ratings import Ratings, ratings_of
from commands.report.subject import RatedDimension, Subject, subject_of
from commands.report.text import decimal, page_columns, points
from ledger.identity import PromptId
from ledger.store import Ledger
from projections.artifacts.escaping import escaped
from projections.artifacts.results import Results
from projections.ratings.elo.rate import prompts_met
from projections.results.columns import Shown
from projections.results.ratings import FragilityRow
from projections.tournament.bank import stronger_judges
from projections.tournament.matches import planned_responses
from projections.tournament.remaining import response_counts
from projections.tournament.state import Tournament
from projections.tournament.waves import not_asked

_STYLE: Final = "style.css"
_SCRIPT: Final = "script.js"
_WORD: Final = re.compile(r"[^_/\-]*[_/\-]+|[^_/\-]+$")  # of a name, with what ends it
# As `commands.importing.labelled_pairs` names them, whose imports would take longer than the page.
_SIDES_OF_LABELLED: Final = {(side, "recorded", "pairs.csv") for side in ("a", "b")}
_SHORT: Final = 12  # characters of a digest, which `tourney log` accepts


class DimensionView(NamedTuple):
    """What is shown of one dimension."""

    name: str
    finding: LeadFinding
    caveats: tuple[str, ...]
    ratings: Ratings
    value: ValueMap | None
    account: str
    is_rated: bool  # some pair is decided or tied


class DigestRow(NamedTuple):
    """A thing that determines the results, and its digest."""

    name: Shown[str]
    what: Shown[str]
    digest: Shown[str]


def report_of_run(ledger: Ledger, results: Results) -> dict[str, bytes]:
    """Return the report of a published run as a file: a rendering, which is not published."""
    return {"report.html": page_of(subject_of(ledger, results, is_run=True)).encode()}


def page_of(subject: Subject, which: WhichBattles = "sample") -> str:
    """Return the report as HTML."""
    style, script = source_of(_STYLE), source_of(_SCRIPT)
    return (
        templates()
        .get_template("page.html")
        .render(
            content_of(subject, which),
            style=style,
            script=script,
            style_hash=hash_of(style),
            script_hash=hash_of(script),
        )
    )


def content_of(subject: Subject, which: WhichBattles) -> dict[str, object]:
    """Return what the templates show of a subject, by the names that they give it."""
    fragile = [(rated, fragile_pairs(rated)) for rated in subject.dimensions]
    results, battles = subject.results, battles_of(subject, which)
    rows = [row for _, rows in fragile for row in rows if row.decisive != ()]
    is_sample = which != "all"
    return {
        "title": title_of(subject),
        "judge": results.judge,
        "terms": results.publication.terms,
        "n_judged": n_judged_prompts(results),
        "n_prompts": n_prompts(results),
        "health": health_of(subject),
        "meanings": MEANINGS,
        "fragile": rows,
        "calibration": calibration_of(subject),
        "metrics": [row for evaluation in subject.evaluations for row in metric_rows(evaluation)],
        "answers": shown_answers(subject),
        "answer_fields": NOT_OF_ANSWERS,
        "spending": spending_of(results.tournament, subject.spend),
        "battles": battles,
        "grids": grids_of(subject, battles, rows, is_sample=is_sample),
        "which": which,
        "provenance": _provenance(subject),
        "dimensions": [view_of(subject, rated, rows) for rated, rows in fragile],
    }


def n_prompts(results: Results) -> int:
    """Count the prompts of a run; several samples of one are one."""
    same_texts = results.tournament.same_texts
    return len({same_texts.get(prompt, prompt) for prompt in results.publication.terms.prompts})


def n_judged_prompts(results: Results) -> int:
    """Count the prompts on which some pair has an outcome, or a verdict in one order."""
    same_texts = results.tournament.same_texts
    return len(
        {
            same_texts.get(settlement.prompt_id, settlement.prompt_id)
            for group in results.settlements.values()
            for settlement in group
            if settlement.outcome is not None or settlement.share is not None
        }
    )


def title_of(subject: Subject) -> str:
    """Return the tournament's name, and which run of it is shown."""
    results = subject.results
    run = f": {results.publication.terms.mode} run" if subject.is_run else ""
    return f"{results.tournament.stream}{run}"


def view_of(
    subject: Subject, rated: RatedDimension, fragile: Sequence[FragilityRow]
) -> DimensionView:
    """Return what is shown of one dimension, with how few prompts decide it."""
    terms = subject.results.publication.terms
    account = rated.comparisons.account
    state, prompts = subject.results.tournament, terms.prompts
    counts = response_counts(state, prompts)
    failed: dict[str, int] = {row.entrant_id: row.failed for row in counts if row.failed}
    is_labelled = _is_labelled(state)
    judge = subject.results.judge
    return DimensionView(
        rated.name,
        finding_on_labelled(judge) if is_labelled else finding_of(rated.board, account),
        (
            *caveats_of(
                rated.board,
                account,
                () if is_labelled else fragile,
                judge,
                n_prompts=int(prompts_met(rated.comparisons.by_verdicts("half")).max(initial=0)),
                drops_ties=terms.elo.ties == "drop",
                failed=failed,
                stronger=stronger_judges(state, judge),
            ),
            *caveats_on_empty(_n_empty(state, prompts)),
        ),
        ratings_of(rated),
        value_map_of(subject, rated),
        "; ".join((account.sentence(), *not_asked(state, judge))),
        account.decided + account.tie > 0,
    )


def _n_empty(state: Tournament, prompts: Collection[PromptId]) -> Counter[str]:
    """Count the empty responses of each entrant that has some."""
    found = (
        (cell.entrant.entrant_id, state.responses.get(cell.response_key))
        for cell in planned_responses(state, prompts)
    )
    return Counter(
        entrant
        for entrant, response in found
        if response and not response.text.strip() and response not in state.redactions
    )


def _is_labelled(state: Tournament) -> bool:
    """Say whether the entrants are the sides of labelled pairs, as `init` lays them out."""
    read = {(entrant.entrant_id, entrant.loader, entrant.weights) for entrant in state.roster}
    return read == _SIDES_OF_LABELLED


def _provenance(subject: Subject) -> dict[str, object]:
    """Return where the numbers come from, and how to check them."""
    state, publication = subject.results.tournament, subject.results.publication
    opening, newest = state.opening, state.newest
    digests = [
        *(("entrant", entrant.entrant_id, entrant.digest) for entrant in state.roster),
        *(("judge", judge.judge_id, judge.digest) for judge in state.panel),
        *(
            ("rubric", f"{rubric.dimension} {rubric.version}", rubric.digest)
            for rubric in state.dimensions
        ),
    ]
    if opening is not None:
        instructions = subject.results.judge.told(opening.instructions)
        digests.append(("instructions", instructions.version, instructions.digest))
        digests.append(("settings", state.stream, opening.configuration_digest))
    checked = [f"tourney verify --checkpoint {subject.head}"]
    if subject.is_run:
        checked.insert(0, f"tourney replay --against runs/{publication.run}")
    return {
        "head": publication.head,
        "position": publication.as_of,
        "until": f"{newest.recorded_at:%Y-%m-%d %H:%M} UTC" if newest else "",
        "digests": [DigestRow(name, what, digest[:_SHORT]) for what, name, digest in digests],
        "versions": ", ".join(map(" ".join, opening.versions)) if opening else "",
        "commands": checked,
    }


@cache
def templates(*packages: str) -> Environment:
    """Return what reads the templates of packages, then of the report; all texts are escaped."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in (*packages, __package__)]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "name": _breakable,
        "points": points,
        "columns": page_columns,
        "decimal": decimal,
        "diagram": diagram_of,
        "figure": value_of,
        "bounds": interval_of,
        "sign": sign_of,
        "prompts": named_prompts,
    }
    return environment


def _breakable(name: str) -> Markup:
    """Return a name that may be broken where its words end, and nowhere else."""
    return Markup("<bdi>{}</bdi>").format(
        Markup("").join(
            each + Markup("<wbr>") for each in map(escape, _WORD.findall(escaped(name)))
        )
    )


def _visible(value: object) -> object:
    """Make the invisible characters of a text visible; drawings are ours."""
    return escaped(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def source_of(name: str, package: str = __package__) -> Markup:
    """Return a file of a package's templates as it stands in a page."""
    file = files(package) / "templates" / name
    return Markup(file.read_text("utf-8").strip())  # noqa: S704  # ours


def hash_of(source: str) -> str:
    """Return what a policy calls a script or a style."""
    return f"sha256-{b64encode(sha256(source.encode()).digest()).decode()}"
