"""Why work is done again: the judge's settings or instructions, a rubric or a prompt changed.

Every opening stays on the ledger, so a query can be built in its earlier words, too.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import msgspec

from ledger.events.registration import (
    Instructions,
    JudgeSettings,
    Prompt,
    Rubric,
    TournamentOpened,
)
from ledger.identity import Dimension, PromptId
from projections.tournament.matches import PlannedResponse, planned_response
from projections.tournament.remaining import OpenQuery
from projections.tournament.state import Tournament
from projections.verdicts.queries import build_query


class Rewording(NamedTuple):
    """Open queries that were asked otherwise before, and what changed since."""

    instructions_changed: bool
    changed_rubric: Dimension | None  # None: their rubrics are the same
    n_queries: int = 0
    changed_settings: tuple[str, ...] = ()  # of the judge, such as max_tokens

    @property
    def sentence(self) -> str:
        """Why queries are asked again."""
        changed = [
            *(["the judge's instructions"] if self.instructions_changed else []),
            *([f"the rubric of {self.changed_rubric}"] if self.changed_rubric else []),
            *(f"the judge's {name}" for name in self.changed_settings),
        ]
        queries = "query is" if self.n_queries == 1 else "queries are"
        return f"{' and '.join(changed)} changed: {self.n_queries:,} {queries} asked again"


class _Wording(NamedTuple):
    """Who is asked about a dimension, and in what words."""

    judge: JudgeSettings
    instructions: Instructions
    rubric: Rubric


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
    found: defaultdict[str, dict[Hashable, JudgeVersion]] = defaultdict(dict)
    openings = (*tournament.replaced_openings, tournament.opening)
    for opening in filter(None, openings):
        rubrics = [
            (reference.label, _shown(tournament.rubrics[reference]))
            for reference in opening.rubrics
            if reference in tournament.rubrics
        ]
        for judge in filter(None, map(tournament.judges.get, opening.judges)):
            told = judge.told(opening.instructions)
            said = repr(sorted(_settings(judge).items())), told.guidance, *rubrics
            known = found[judge.judge_id].pop(said, None)  # a wording that came back is the newest
            found[judge.judge_id][said] = known or JudgeVersion(judge, opening)
    names: dict[str, JudgeVersion] = {}
    for judge_id, versions in found.items():
        names |= {f"{judge_id}@{n}": each for n, each in enumerate(versions.values(), start=1)}
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
            _Wording(judge, judge.told(tournament.opening.instructions), rubric),
            _earlier_wordings(tournament, judge, rubric.dimension),
        )
        for rubric in tournament.dimensions
    }
    changes: Counter[Rewording] = Counter()
    for query in queries:
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
    earlier, told = _earlier_prompts(tournament), tournament.opening.instructions
    counts: Counter[PromptId] = Counter()
    for match, asked, _ in queries:
        rubric, prompt = match.pairing.rubric, match.pairing.prompt
        a, b = match.response_a.text, match.response_b.text
        formers = (
            build_query(judge, told, rubric, former, a=a, b=b, order=asked.order)
            for former in earlier[prompt.prompt_id]
            if former.text == prompt.text
        )
        if any(tournament.was_asked(former.query_key) for former in formers):
            counts[prompt.prompt_id] += 1
    return counts


def _earlier_prompts(tournament: Tournament) -> Mapping[PromptId, Sequence[Prompt]]:
    """Return by id what prompts were in earlier openings and are no more, the newest first."""
    now = frozenset(tournament.bank)
    found: defaultdict[PromptId, list[Prompt]] = defaultdict(list)
    references = (each for opening in tournament.replaced_openings for each in opening.prompts)
    known = map(tournament.prompts.get, dict.fromkeys(reversed([*references])))
    for prompt in filter(None, known):
        if prompt not in now:
            found[prompt.prompt_id].append(prompt)
    return found


def _earlier_wordings(
    tournament: Tournament, judge: JudgeSettings, dimension: Dimension
) -> tuple[_Wording, ...]:
    """Return the wordings of earlier openings, each once, the newest first.

    The judge of an opening is the one of the same name, if it has one.
    """
    wordings = (
        _Wording(former, former.told(opening.instructions), rubric)
        for opening in reversed(tournament.replaced_openings)
        for former in [_named_alike(tournament, opening, judge)]
        for reference in opening.rubrics
        if reference.label == dimension and (rubric := tournament.rubrics.get(reference))
    )
    return tuple(dict.fromkeys(wordings))


def _named_alike(
    tournament: Tournament, opening: TournamentOpened, judge: JudgeSettings
) -> JudgeSettings:
    known = (tournament.judges.get(each) for each in opening.judges if each.label == judge.judge_id)
    return next(filter(None, known), judge)


def _last_asked(
    tournament: Tournament, query: OpenQuery, earlier: Sequence[_Wording]
) -> _Wording | None:
    """Return the wording in which a query was last asked; None: never, or as it is now.

    A repeat is asked as it was.
    """
    match, asked, _ = query
    if query.repeats is not None or tournament.was_asked(asked.query_key):
        return None
    a, b, prompt = match.response_a.text, match.response_b.text, match.pairing.prompt
    for wording in earlier:
        former = build_query(*wording, prompt, a=a, b=b, order=asked.order)
        if tournament.was_asked(former.query_key):
            return wording
    return None


def _change(before: _Wording, now: _Wording) -> Rewording:
    """Say whether the instructions changed, and name the rubric and the settings that did."""
    has_new_rubric = _shown(before.rubric) != _shown(now.rubric)
    was, is_now = _settings(before.judge), _settings(now.judge)
    return Rewording(
        before.instructions.guidance != now.instructions.guidance,
        now.rubric.dimension if has_new_rubric else None,
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
