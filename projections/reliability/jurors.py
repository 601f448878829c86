"""Agreement of the judges of imported battles, from what each of them said.

A battle that a jury decided has the vote of each juror. Else a judge's verdicts on two entrants in
opposite slots are the two orders of one game: one outcome where they are equal, else inconsistent.
Of several games on a prompt, as the turns of MT-bench, the first verdict in one order goes with the
first in the other, and so on. A verdict that is never repeated in the other order is a game itself.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from ledger.events.imports import BattlesImported, ImportedBattle, JurorSaid
from ledger.events.judging import Outcome
from projections.reliability.agreement import (
    JudgeTest,
    Measure,
    VotesByAnnotator,
    compare_judges,
    each_judge_tested,
    rate_of,
)
from projections.tournament.compared import ComparedBattle
from projections.verdicts.policies import majority

AS_RECORDED: Final = "majority as recorded"
WITH_MAJORITY: Final = "agreement with the majority"
_OUTCOMES: Final[Mapping[JurorSaid, Outcome]] = {
    "model_a": "a",
    "model_b": "b",
    "tie": "tie",
    "tie (bothbad)": "tie",
    "inconsistent": "inconsistent",
}
_OTHER_WAY: Final[Mapping[Outcome, Outcome]] = {"a": "b", "b": "a"}
_Pair: TypeAlias = tuple[Hashable, str, str]
"""A prompt and two entrants in alphabetical order."""

_Game: TypeAlias = tuple[Hashable, str, str, int]
"""A pair, and which of a judge's games on it."""

_Said: TypeAlias = Mapping[str, Mapping[_Game, Sequence[Outcome]]]
_Judged: TypeAlias = dict[str, dict[Hashable, ComparedBattle]]
_FEWEST: Final = 2  # votes of a majority


def jury_agreement(name: str, events: Iterable[BattlesImported]) -> tuple[Measure, ...]:
    """Measure the judges of an imported set: each alone, each two, and all together."""
    battles = [battle for event in events for battle in event.battles()]
    said = _games(battles)
    judged = _outcomes(name, said)
    compared = compare_judges(judged, _prompts(said))
    measures = (*_habits(said, judged), *compared, *_of_juries(battles))
    return tuple(measure._replace(dimension=name) for measure in measures)


def jury_tests(name: str, events: Iterable[BattlesImported]) -> tuple[JudgeTest, ...]:
    """Test each judge of an imported set against the people whose votes are in the set."""
    battles = [battle for event in events for battle in event.battles()]
    sources = {judge: battle.source for battle in battles for judge, _ in _votes(battle)}
    said = _games(battles)
    judges, people = (
        _outcomes(name, {judge: given for judge, given in said.items() if sources[judge] == source})
        for source in ("llm-judge", "human")
    )
    return tuple(each_judge_tested(name, judges, people, _prompts(said)))


def _outcomes(name: str, said: _Said) -> _Judged:
    return {
        judge: {
            item: ComparedBattle(name, None, 0, *item[1:3], status=_joined(outcomes))
            for item, outcomes in sorted(given.items(), key=str)
        }
        for judge, given in sorted(said.items())
    }


def _prompts(said: _Said) -> dict[Hashable, Hashable]:
    return {item: item[0] for given in said.values() for item in given}


def votes_by_annotator(name: str, events: Iterable[BattlesImported]) -> VotesByAnnotator:
    """Return what people said in an imported set, by whoever it was."""
    people = [
        battle for event in events for battle in event.battles() if battle.source != "llm-judge"
    ]
    by_annotator: dict[str, dict[_Pair, list[Outcome]]] = {}
    for annotator, games in sorted(_games(people).items()):
        given = by_annotator.setdefault(annotator, {})
        for (prompt, a, b, _), outcomes in games.items():
            given.setdefault((prompt, a, b), []).extend(outcomes)
    return {
        annotator: {
            (prompt, frozenset((a, b))): ComparedBattle(name, None, 0, a, b, _joined(outcomes))
            for (prompt, a, b), outcomes in given.items()
        }
        for annotator, given in by_annotator.items()
    }


def _games(battles: Sequence[ImportedBattle]) -> dict[str, dict[_Game, list[Outcome]]]:
    """Return by judge what it said in each game; `a` is the first entrant in the alphabet."""
    games: defaultdict[str, defaultdict[_Game, list[Outcome]]]
    games = defaultdict(lambda: defaultdict(list))
    n_before = Counter[tuple[str, _Pair, bool]]()
    for place, battle in enumerate(battles):
        first, second = sorted((battle.model_a, battle.model_b))
        prompt = place if battle.question_id is None else battle.question_id
        is_same = first == battle.model_a
        for judge, vote in _votes(battle):
            # a juror's vote is on both orders, so each is a game, whatever slots the battle names
            order = judge, (prompt, first, second), is_same and not battle.votes
            outcome, number = _OUTCOMES.get(vote), n_before[order]
            n_before[order] += 1
            if outcome is not None:
                turned = outcome if is_same else _OTHER_WAY.get(outcome, outcome)
                games[judge][prompt, first, second, number].append(turned)
    return {judge: dict(given) for judge, given in games.items()}


def _votes(battle: ImportedBattle) -> Iterator[tuple[str, JurorSaid]]:
    """Yield what each judge of a battle said."""
    if battle.votes:
        yield from battle.votes
    elif battle.judge_model is not None:
        yield battle.judge_model, battle.winner


def _joined(outcomes: Sequence[Outcome]) -> Outcome:
    return outcomes[0] if len(set(outcomes)) == 1 else "inconsistent"


def _habits(said: _Said, judged: _Judged) -> Iterator[Measure]:
    """Yield each judge's own figures."""
    for judge, outcomes in judged.items():
        statuses = [outcome.status for outcome in outcomes.values()]
        in_both = [outcomes for outcomes in said[judge].values() if len(outcomes) > 1]
        n_equal = sum(_joined(outcomes) != "inconsistent" for outcomes in in_both)
        n, alone = len(statuses), (judge,)
        yield rate_of("order consistency", n_equal, len(in_both), alone)
        yield rate_of("tied share", statuses.count("tie"), n, alone)
        yield rate_of("inconsistent share", statuses.count("inconsistent"), n, alone)


def _of_juries(battles: Iterable[ImportedBattle]) -> Iterator[Measure]:
    """Yield how often each juror voted as the majority, and whether that is what was recorded.

    Battles without a majority, and jurors that contradicted themselves, say nothing of the former.
    """
    agreed: defaultdict[str, list[bool]] = defaultdict(list)
    recorded: list[bool] = []
    for battle in battles:
        votes = {judge: _OUTCOMES[vote] for judge, vote in battle.votes if vote in _OUTCOMES}
        if len(votes) >= _FEWEST:
            winner = majority(votes.values())
            recorded.append(winner == _OUTCOMES.get(battle.winner, "inconsistent"))
            for judge, outcome in votes.items():
                is_compared = "inconsistent" not in {winner, outcome}
                agreed[judge] += [outcome == winner] if is_compared else []
    for judge, equal in sorted(agreed.items()):
        yield rate_of(WITH_MAJORITY, sum(equal), len(equal), judges=(judge,))
    if recorded:
        yield rate_of(AS_RECORDED, sum(recorded), len(recorded), judges=tuple(sorted(agreed)))
