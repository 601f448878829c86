"""Why queries are asked again: which words changed since they were asked."""

import pytest

from ledger.events.registration import Instructions, Prompt, Rubric
from ledger.events.registry import Event
from projections.tournament.remaining import (
    ENDLESS_RETRIES,
    missing_responses,
    open_queries,
    open_repeats,
    repeats_of,
)
from projections.tournament.rewording import (
    JudgeVersion,
    Rewording,
    edited_answers,
    edited_texts,
    judge_versions,
    rewordings,
)
from projections.tournament.settlement import settle
from projections.tournament.state import Tournament
from tests.support.builders.events import STREAM, instructions, judge, known, opened, prompt, rubric
from tests.support.builders.money import put
from tests.support.builders.worlds import answered, become, everything, failure, matches_of

FACTS, STYLE = rubric("factuality"), rubric("style")
OLD, NEW = instructions("Compare."), instructions("Compare well.")


def opening(
    told: Instructions = OLD, style: Rubric = STYLE, *, number: int = 1, gold: str = "aspirin"
) -> tuple[Event, ...]:
    """Return an opening with two pairs on each of two dimensions, which makes eight queries."""
    prompts = [prompt("p1", gold=gold), prompt("p2", gold=gold)]
    return opened(prompts=prompts, rubrics=[FACTS, style], told=told, opening=number)


def judged(*events: Event, n_pairs: int = 4) -> tuple[Event, ...]:
    """Return events, and verdicts on the first pairs that the tournament has after them."""
    matches = matches_of(known(*events))[:n_pairs]
    return (*events, *(event for match in matches for event in become(match, "a")))


def asked_again(*events: Event, by: str = "reference") -> tuple[Rewording, ...]:
    """Return what changed since the open queries were asked."""
    state = known(*events)
    asked = judge(by, model=f"{by}'s") if by != "reference" else state.panel[0]
    queries = open_queries(state, everything(state), asked, ENDLESS_RETRIES)
    return rewordings(state, queries, asked)


BEFORE = judged(*answered(opening()))


STRICTER, BLIND = rubric("style", text="Be strict."), rubric("style", needs_gold=False)
NEWEST, RELABELLED = instructions("Compare best."), instructions("Compare.", version="2")


@pytest.mark.parametrize(
    ("later", "found"),
    [
        pytest.param((), (), id="nothing changed"),
        pytest.param(
            opening(NEW, number=2),
            (Rewording(True, None, 8),),
            id="every query holds the instructions",
        ),
        pytest.param(
            opening(style=STRICTER, number=2),
            (Rewording(False, STYLE.dimension, 4),),
            id="a rubric is in the queries of its own dimension",
        ),
        pytest.param(
            opening(NEW, BLIND, number=2),
            (Rewording(True, None, 4), Rewording(True, STYLE.dimension, 4)),
            id="both changed, and each query is counted once",
        ),
        pytest.param(
            opening(RELABELLED, rubric("style", version="2"), number=2),
            (),
            id="a version is a label for people, and no judge sees it",
        ),
        pytest.param(
            (*opening(NEW, number=2), *opening(NEWEST, number=3)),
            (Rewording(True, None, 8),),
            id="every earlier wording counts, not only the last",
        ),
        pytest.param(
            (*opening(NEW, number=2), *opening(OLD, number=3)),
            (),
            id="words came back, whose verdicts are still there",
        ),
        pytest.param(
            opening(gold="ibuprofen", number=2), (), id="a gold answer is no matter of words"
        ),
    ],
)
def test_it_is_said_which_words_changed_since_queries_were_asked(
    later: tuple[Event, ...], found: tuple[Rewording, ...]
) -> None:
    """Whoever pays again learns why."""
    assert asked_again(*BEFORE, *later) == found


def test_new_settings_of_a_judge_ask_everything_again() -> None:
    """They determine its replies, so it is another judge of the same name."""
    before = judge("ann", parameters=(("max_tokens", 100), ("protocol", "line")))
    longer = judge("ann", parameters=(("max_tokens", 200), ("protocol", "line")))
    asked = judged(*answered(opened(prompts=[prompt()], rubrics=[FACTS], judges=[before])))
    state = known(*asked, *opened(prompts=[prompt()], rubrics=[FACTS], judges=[longer], opening=2))
    queries = open_queries(state, everything(state), longer, ENDLESS_RETRIES)

    (found,) = rewordings(state, queries, longer)

    assert found == Rewording(False, None, len(queries), ("max_tokens",))
    assert found.sentence == "the judge's max_tokens changed: 2 queries are asked again"


def test_only_queries_that_were_asked_are_asked_again() -> None:
    """The others are asked for the first time."""
    before = judged(*answered(opening()), n_pairs=1)

    (found,) = asked_again(*before, *opening(NEW, number=2))

    assert found.n_queries == 2


def test_queries_that_another_judge_was_asked_are_new() -> None:
    """Its replies stay; this judge has given none."""
    assert asked_again(*BEFORE, *opening(NEW, number=2), by="other") == ()


def test_a_query_that_failed_in_its_present_words_is_no_matter_of_words() -> None:
    """It is asked again because its reply was no verdict."""
    rewritten = (*BEFORE, *opening(NEW, number=2))
    (first, *_) = matches_of(known(*rewritten))
    failed = (put(first, first.swapped), failure(first.swapped))

    (found,) = asked_again(*rewritten, *failed)

    assert found.n_queries == 7


def edited(*events: Event) -> tuple[tuple[str, ...], dict[str, int]]:
    """Return the prompts with another text, and the queries by prompt with another gold answer."""
    state = known(*events)
    prompts = everything(state)
    queries = open_queries(state, prompts, state.panel[0], ENDLESS_RETRIES)
    texts = edited_texts(state, missing_responses(state, prompts))
    counts = edited_answers(state, queries, state.panel[0])
    return texts, {str(name): n for name, n in counts.items()}


def reopened(*prompts: Prompt, number: int = 2) -> tuple[Event, ...]:
    """Return an opening with these prompts."""
    return opened(prompts=prompts, rubrics=[FACTS, STYLE], told=OLD, opening=number)


P1, P2, P3 = prompt("p1"), prompt("p2"), prompt("p3")
CORRECTED = prompt("p2", gold="ibuprofen")
EDITED_1, EDITED_2 = (prompt(name, text="What helps against fever?") for name in ("p1", "p2"))


@pytest.mark.parametrize(
    ("events", "texts", "answers"),
    [
        pytest.param(BEFORE, (), {}, id="nothing changed"),
        pytest.param(
            (*BEFORE, *reopened(P1, CORRECTED)), (), {"p2": 4}, id="a gold answer was corrected"
        ),
        pytest.param(
            (*BEFORE, *reopened(P1, CORRECTED), *reopened(P1, P2, number=3)),
            (),
            {},
            id="the former gold answer is back, and its verdicts are there",
        ),
        pytest.param(
            (*answered(opening()), *reopened(P1, CORRECTED)),
            (),
            {},
            id="what was never asked is not asked again",
        ),
        pytest.param((*BEFORE, *reopened(P1, EDITED_2)), ("p2",), {}, id="a text was edited"),
        pytest.param((*BEFORE, *reopened(P1, P2, P3)), (), {}, id="a further prompt"),
        pytest.param(
            (*opening(), *reopened(EDITED_1, P2)), (), {}, id="nobody had answered the former text"
        ),
    ],
)
def test_prompts_that_were_edited_and_gold_answers_that_were_corrected_are_named(
    events: tuple[Event, ...], texts: tuple[str, ...], answers: dict[str, int]
) -> None:
    """Whoever sees responses missing, or queries asked again, need not compare two banks."""
    assert edited(*events) == (texts, answers)


def test_a_repeat_is_asked_as_its_query_was() -> None:
    """Although nobody asked it before, and the pair was once put in other words."""
    now = judged(*BEFORE, *opening(style=rubric("style", text="Be brief."), number=2))
    state = known(*now)
    repeats = [*repeats_of(state, everything(state), state.panel[0])]

    assert repeats
    assert rewordings(state, open_repeats(state, repeats, ENDLESS_RETRIES), state.panel[0]) == ()


def test_a_tournament_that_was_never_opened_asks_nothing() -> None:
    """There is nothing to compare with."""
    assert rewordings(known(), (), judge()) == ()
    assert edited_answers(known(), (), judge()) == {}
    assert edited_texts(known(), ()) == ()


def test_a_sentence_names_what_changed() -> None:
    """It is said before money is asked for."""
    style = STYLE.dimension

    said = [
        each.sentence
        for each in (
            Rewording(instructions_changed=True, changed_rubric=None, n_queries=1),
            Rewording(instructions_changed=True, changed_rubric=style, n_queries=1_000),
        )
    ]

    assert said == [
        "the judge's instructions changed: 1 query is asked again",
        "the judge's instructions and the rubric of style changed: 1,000 queries are asked again",
    ]


def versions(*events: Event) -> dict[str, str]:
    """Return the instructions of each version of a judge, by its name."""
    found = judge_versions(known(*events))
    return {name: each.opening.instructions.guidance for name, each in found.items()}


def test_other_instructions_make_another_version_of_a_judge() -> None:
    """The name alone is the newest; an opening that changes neither is none."""
    assert versions(*opening()) == {"reference@1": "Compare.", "reference": "Compare."}
    assert versions(*opening(), *opening(gold="honey", number=2), *opening(NEW, number=3)) == {
        "reference@1": "Compare.",
        "reference@2": "Compare well.",
        "reference": "Compare well.",
    }


def test_another_rubric_makes_another_version_of_a_judge() -> None:
    """And one that comes back is the newest again."""
    first, second = opening(), opening(style=STRICTER, number=2)

    found = judge_versions(known(*first, *second, *opening(number=3)))

    assert [*found] == ["reference@1", "reference@2", "reference"]
    assert found["reference"].opening.opening == 1
    assert found["reference@1"].opening.opening == 2


def test_a_tournament_is_seen_with_the_words_of_a_version() -> None:
    """So what was judged by these words is there again; a tournament without words is itself."""
    events = (*BEFORE, *opening(NEW, number=2))
    state = known(*events)
    before, now = (judge_versions(state)[name] for name in ("reference@1", "reference"))

    def n_judged(version: JudgeVersion) -> int:
        seen = version.of(state)
        settled = settle(seen, everything(seen), version.judge)
        return sum(each.outcome is not None for each in settled)

    assert (n_judged(before), n_judged(now)) == (4, 0)
    assert before.of(Tournament(STREAM)) == Tournament(STREAM)
