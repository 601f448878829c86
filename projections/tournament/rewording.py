"""Why work is done again: the judge's settings or instructions, a rubric or a prompt changed.

Every opening stays on the ledger, so a query can be built in its earlier words, too.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import msgspec

from ledger.events.judging import Order
from ledger.events.registration import (
    Instructions,
    JudgeSettings,
    Prompt,
    Rubric,
    TournamentOpened,
)
from ledger.identity import Digest, Dimension, PromptId
from projections.tournament.bank import is_eligible
from projections.tournament.matches import Match, PlannedResponse, planned_response
from projections.tournament.remaining import OpenQuery
from projections.tournament.state import Tournament
from projections.verdicts.queries import wording_of

_NAMES: Final[Mapping[str, str]] = {"together": "[judging] together"}


class Rewording(NamedTuple):
    """Open queries that were asked otherwise before, and what changed since."""

    instructions_changed: bool
    changed_rubric: str | None  # its dimension, or those asked together; None: they are the same
    n_queries: int = 0
    changed_settings: tuple[str, ...] = ()  # of the judge, such as max_tokens

    @property
    def sentence(self) -> str:
        """Why queries are asked again."""
        changed = [
            *(["the judge's instructions"] if self.instructions_changed else []),
            *([f"the rubric of {self.changed_rubric}"] if self.changed_rubric else []),
            *(_NAMES.get(name, f"the judge's {name}") for name in self.changed_settings),
        ]
        queries = "query is" if self.n_queries == 1 else "queries are"
        return f"{' and '.join(changed)} changed: {self.n_queries:,} {queries} asked again"


class _Wording(NamedTuple):
    """Who is asked about a dimension, and in what words."""

    judge: JudgeSettings
    instructions: Instructions
    rubric: Rubric
    planned: tuple[Rubric, ...]  # all that are asked together, on prompts that have what they need

    def key(self, match: Match, order: Order, prompt: Prompt | None = None) -> Digest:
        """Return the key of the request that shows a pair, or has another version of its prompt."""
        prompt = prompt or match.pairing.prompt
        planned = tuple(rubric for rubric in self.planned if is_eligible(rubric, prompt))
        wording = wording_of(*self[:3], prompt, planned=planned)
        return wording.query(match.response_a.text, match.response_b.text, order).query_key


class JudgeVersion(NamedTuple):
    """A judge with the instructions and the rubrics that it was sent."""

    judge: JudgeSettings
    opening: TournamentOpened  # the first that had all of these

    def of(self, tournament: Tournament) -> Tournament:
        """Return the tournament as it is, but with this version's instructions and rubrics."""
        if tournament.opening is None:
            return tournament
        told = {"instructions": self.opening.instructions, "rubrics": self.opening.rubrics}
        return replace(tournament, opening=msgspec.structs.replace(tournament.opening, **told))


def judge_versions(tournament: Tournament) -> Mapping[str, JudgeVersion]:
    """Return by name every judge, as `opus`, and its versions, as `opus@1`, the oldest first.

    What a judge says depends on its settings, its instructions and the rubrics: a version differs
    in one of these from those before. The name alone stands for the newest.
    """
    by_judge: defaultdict[str, dict[Hashable, JudgeVersion]] = defaultdict(dict)
    openings = (*tournament.replaced_openings, tournament.opening)
    for opening in filter(None, openings):
        rubrics = [
            (reference.label, _shown(tournament.rubrics[reference]))
            for reference in opening.rubrics
            if reference in tournament.rubrics
        ]
        for judge in filter(None, map(tournament.judges.get, opening.judges)):
            instructions = judge.told(opening.instructions)
            said = repr(sorted(_settings(judge).items())), instructions.guidance, *rubrics
            known = by_judge[judge.judge_id].pop(
                said, None
            )  # a wording that came back is the newest
            by_judge[judge.judge_id][said] = known or JudgeVersion(judge, opening)
    names: dict[str, JudgeVersion] = {}
    for judge_id, versions in by_judge.items():
        names |= {
            f"{judge_id}@{n}": version for n, version in enumerate(versions.values(), start=1)
        }
        names[judge_id] = [*versions.values()][-1]
    return names


def rewordings(
    tournament: Tournament, queries: Sequence[OpenQuery], judge: JudgeSettings
) -> tuple[Rewording, ...]:
    """Count the open queries that were asked otherwise before, by what changed since."""
    if tournament.opening is None:
        return ()
    wordings = {
        rubric.dimension: (
            _Wording(
                judge,
                judge.told(tournament.opening.instructions),
                rubric,
                _asked_together(judge, tournament.dimensions),
            ),
            _earlier_wordings(tournament, judge, rubric.dimension),
        )
        for rubric in tournament.dimensions
    }
    changes: Counter[Rewording] = Counter()
    for query in (open_query for request in queries for open_query in request.every):
        now, earlier = wordings[query.match.pairing.rubric.dimension]
        before = _last_asked(tournament, query, earlier)
        if before is not None:
            changes[_change(before, now)] += 1
    return tuple(change._replace(n_queries=n) for change, n in changes.items())


def edited_texts(
    tournament: Tournament, missing: Iterable[PlannedResponse]
) -> tuple[PromptId, ...]:
    """Return the prompts that an entrant answered when they had another text, in order."""
    earlier = _earlier_prompts(tournament)
    edited = (
        cell.prompt.prompt_id
        for cell in missing
        for former in earlier[cell.prompt.prompt_id]
        if former.text != cell.prompt.text
        and planned_response(tournament, cell.entrant, former).response_key in tournament.responses
    )
    return tuple(dict.fromkeys(edited))


def edited_answers(
    tournament: Tournament, queries: Iterable[OpenQuery], judge: JudgeSettings
) -> Mapping[PromptId, int]:
    """Count by prompt the open queries that were asked when it had another gold answer.

    Or another expected behaviour, where the rubric shows it.
    """
    if tournament.opening is None:
        return {}
    earlier, instructions = _earlier_prompts(tournament), tournament.opening.instructions
    planned = _asked_together(judge, tournament.dimensions)
    counts: Counter[PromptId] = Counter()
    for query in (open_query for request in queries for open_query in request.every):
        match, prompt = query.match, query.match.pairing.prompt
        wording = _Wording(judge, instructions, match.pairing.rubric, planned)
        formers = (former for former in earlier[prompt.prompt_id] if former.text == prompt.text)
        keys = (wording.key(match, query.asked.order, former) for former in formers)
        counts[prompt.prompt_id] += any(map(tournament.was_asked, keys))
    return +counts


def _asked_together(judge: JudgeSettings, rubrics: Sequence[Rubric]) -> tuple[Rubric, ...]:
    return tuple(rubrics) if judge.is_together else ()


def _earlier_prompts(tournament: Tournament) -> Mapping[PromptId, Sequence[Prompt]]:
    """Return by id what prompts were in earlier openings and are no more, the newest first."""
    now = frozenset(tournament.bank)
    earlier: defaultdict[PromptId, list[Prompt]] = defaultdict(list)
    references = (
        reference for opening in tournament.replaced_openings for reference in opening.prompts
    )
    known = map(tournament.prompts.get, dict.fromkeys(reversed([*references])))
    for prompt in filter(None, known):
        if prompt not in now:
            earlier[prompt.prompt_id].append(prompt)
    return earlier


def _earlier_wordings(
    tournament: Tournament, judge: JudgeSettings, dimension: Dimension
) -> tuple[_Wording, ...]:
    """Return the wordings of earlier openings, each once, the newest first.

    The judge of an opening is the one of the same name, if it has one.
    """
    wordings = (
        _Wording(
            former, former.told(opening.instructions), rubric, _asked_together(former, rubrics)
        )
        for opening in reversed(tournament.replaced_openings)
        for former in [_named_alike(tournament, opening, judge)]
        for rubrics in [[*filter(None, map(tournament.rubrics.get, opening.rubrics))]]
        for rubric in rubrics
        if rubric.dimension == dimension
    )
    return tuple(dict.fromkeys(wordings))


def _named_alike(
    tournament: Tournament, opening: TournamentOpened, judge: JudgeSettings
) -> JudgeSettings:
    judges = (
        tournament.judges.get(reference)
        for reference in opening.judges
        if reference.label == judge.judge_id
    )
    return next(filter(None, judges), judge)


def _last_asked(
    tournament: Tournament, query: OpenQuery, earlier: Sequence[_Wording]
) -> _Wording | None:
    """Return the wording in which a query was last asked; None: never, or as it is now.

    A repeat is asked as it was.
    """
    if query.is_repeat or tournament.was_asked(query.key):
        return None
    was_asked = tournament.was_asked
    return next((x for x in earlier if was_asked(x.key(query.match, query.asked.order))), None)


def _change(before: _Wording, now: _Wording) -> Rewording:
    """Say whether the instructions changed, and name the rubric and the settings that did."""
    is_alike = before.judge.is_together == now.judge.is_together
    earlier, later = (
        {
            rubric.dimension: _shown(rubric)
            for rubric in (is_alike and wording.planned) or [wording.rubric]
        }
        for wording in (before, now)
    )
    changed = [
        dimension
        for dimension in {**earlier, **later}
        if earlier.get(dimension) != later.get(dimension)
    ]
    was, is_now = _settings(before.judge), _settings(now.judge)
    return Rewording(
        before.instructions.guidance != now.instructions.guidance,
        ", ".join(changed) or None,
        changed_settings=tuple(
            name for name in sorted({*was, *is_now}) if was.get(name) != is_now.get(name)
        ),
    )


def _settings(judge: JudgeSettings) -> Mapping[str, object]:
    """Return by name what determines a judge's replies, as its digest does."""
    return {"provider": judge.company, "model": judge.model, **dict(judge.parameters)}


def _shown(rubric: Rubric) -> tuple[str, bool, bool, bool]:
    """Return what of a rubric a judge is shown, or decides on what it is shown."""
    all_turns = rubric.turns == "all"
    return rubric.guidance, rubric.needs_gold, rubric.shows_expected_behavior, all_turns
