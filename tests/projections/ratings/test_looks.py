"""Looks decide as rarely wrongly as they say, stop what is futile, and decide the same again."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from math import inf
from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ledger.events.registry import Event
from projections.battles.columns import Battles
from projections.intervals import Floats
from projections.ratings.boundaries import Schedule
from projections.ratings.looks import (
    Look,
    decides_alike,
    look_at,
    look_now,
    waves_asked,
    waves_to_ask,
)
from projections.tournament.waves import (
    entrant_reference,
    judge_reference,
    n_looks_of,
    not_asked,
    open_wave,
)
from tests.support.builders.battles import in_columns
from tests.support.builders.events import prompt, responses, rubric
from tests.support.builders.looks import (
    FOUR_LOOKS,
    LOGIT,
    all_pairs,
    blocks,
    covered,
    decided_in_full,
    equals,
    false_share_of_stopped,
    false_shares,
    forecast_dollars,
    looked_at,
    simulated,
    spared,
    with_baseline,
)
from tests.support.builders.waves import FOUR, Names, bank, opening
from tests.support.builders.worlds import Fate, become, matches_of
from tests.support.specification import after

SPREAD = np.array([0.0, 80, 160, 320]) / LOGIT


def drawn(
    strengths: Sequence[float] | Floats = (0.0,) * 4, *, seed: int = 0, n_prompts: int = 143
) -> Battles:
    """Draw a tournament; without strengths one of four equals."""
    rng = np.random.default_rng(seed)
    return simulated(np.array(strengths), rng, n_prompts=n_prompts)


def first(battles: Battles, share: float) -> Battles:
    """Return the battles on a share of the prompts."""
    return battles.take(battles.cluster < round(share * (battles.cluster.max() + 1)))


@pytest.mark.parametrize(
    ("n_prompts", "n_samples", "n_looks"),
    [(3, 1, 1), (39, 1, 1), (40, 1, 2), (40, 3, 2), (80, 1, 4)],
)
def test_a_small_bank_has_fewer_looks(n_prompts: int, n_samples: int, n_looks: int) -> None:
    """On fewer than twenty prompts it is chance what is decided, and what seems futile."""
    sections = {"generation": {"samples": n_samples}}

    state = after(*opening(bank(n_prompts, n_samples), n_looks=4, sections=sections))

    assert n_looks_of(state) == n_looks
    (told,) = not_asked(state)
    assert (" looks are planned instead of 4" in told) == (n_looks == 2)
    assert told.endswith("it spares nothing") == (n_looks == 1)


def test_a_clear_winner_is_decided_early() -> None:
    """On half of the prompts, each of its pairs; the others are asked on."""
    battles = drawn([1.5, 0, 0, 0])

    look = look_at(first(battles, 0.5), all_pairs(battles), Schedule(FOUR_LOOKS, (4.3,)))

    assert {*look.decided} == {*with_baseline(battles)}


def test_equals_are_futile_before_the_end() -> None:
    """At the last look nothing is to come, and so nothing is futile."""
    seen = looked_at(drawn(), all_pairs(drawn()))
    last = look_at(drawn(), all_pairs(drawn()), Schedule(FOUR_LOOKS, (9, 9, 9)))

    assert not seen.decided
    assert len(seen.futile) >= 5
    assert len(seen.asked) < 0.8 * len(drawn())
    assert last.futile == ()


def test_a_futile_pair_is_decided_by_later_evidence() -> None:
    """The other pairs go on, and say something about it, too: it is tested all the same."""
    rows = [("a", "b", float(prompt % 2), prompt) for prompt in range(50)]
    rows += [("a", "b", float(prompt % 20 != 0), prompt) for prompt in range(50, 100)]
    battles = in_columns(rows)
    shares = (0.5, 1.0)

    early = look_at(first(battles, 0.5), all_pairs(battles), Schedule(shares, ()))
    late = look_at(battles, all_pairs(battles), Schedule(shares, (early.critical,)))

    assert [{*pair} for pair in early.futile] == [{"a", "b"}]
    assert late.decided == (("a", "b"),)


@given(seed=st.integers(0, 10**6))
def test_a_single_look_decides_no_less_than_all_pairs_at_once(seed: int) -> None:
    """Decided pairs are tested no more, which makes the test of the others easier (step-down)."""
    battles = drawn(SPREAD, seed=seed, n_prompts=60)

    look = look_at(battles, all_pairs(battles), Schedule((1.0,), ()), n_draws=20_000)

    assert decided_in_full(battles) <= {*look.decided}


def test_decided_pairs_make_the_test_of_the_others_easier() -> None:
    """Of two blocks far apart, two pairs are left; of four equals, six."""
    battles = drawn([0, 0, 2, 2])

    look = look_at(battles, all_pairs(battles), Schedule((1.0,), ()))
    of_two = look_at(battles, [("e00", "e01"), ("e02", "e03")], Schedule((1.0,), ()))
    of_six = look_at(drawn(), all_pairs(battles), Schedule((1.0,), ()))

    assert {frozenset(pair) for pair in look.decided} == {
        frozenset((a, b)) for a in ("e00", "e01") for b in ("e02", "e03")
    }
    assert look.critical == of_two.critical < of_six.critical


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [("a", "b", 1.0, 1)],  # b won nothing: neither has a rating
        [("a", "b", 0.0, 1), ("a", "b", 1.0, 2)],  # too few prompts for an interval
    ],
)
def test_what_has_no_interval_is_not_decided(rows: list[tuple[str, str, float, int]]) -> None:
    """Nor is it futile, and intervals stay as they are."""
    look = look_at(in_columns(rows), [("a", "b")], Schedule(FOUR_LOOKS, ()))

    assert look == Look(inf, (), (), 1.0)


def test_a_newcomer_does_not_disturb_the_others() -> None:
    """It has met the others on three prompts, and has no interval yet."""
    battles = drawn([1.5, 0, 0])
    few = drawn([1.5, 0, 0, 0], n_prompts=143)
    few = few.take((few.b < 3) | (few.cluster < 3))

    look, alone = (look_at(each, all_pairs(each), Schedule((1.0,), ())) for each in (few, battles))

    assert look.critical == pytest.approx(alone.critical, abs=0.05)
    assert not any("e03" in pair for pair in (*look.decided, *look.futile))


def test_intervals_are_a_little_wider_after_looks() -> None:
    """By the last critical value over that of one look: 3 to 5 %, and not at all after one."""
    battles = drawn(SPREAD)

    four, one = (
        look_at(battles, all_pairs(battles), Schedule(shares, ()))
        for shares in (FOUR_LOOKS, (1.0,))
    )

    assert 1.03 < four.widening < 1.05
    assert one.widening == 1


def test_a_look_decides_the_same_again() -> None:
    """Whatever the order of battles and pairs; processors and threads have no say."""
    battles, schedule = first(drawn(SPREAD), 0.5), Schedule(FOUR_LOOKS, (4.3,))
    shuffled = battles.take(np.random.default_rng(1).permutation(len(battles)))
    backwards = [(b, a) for a, b in reversed(all_pairs(battles))]

    one, other = (
        look_at(battles, all_pairs(battles), schedule),
        look_at(shuffled, backwards, schedule),
    )

    assert (one.critical, one.widening) == (other.critical, other.widening)
    assert {*one.decided} == {*other.decided}
    assert {frozenset(pair) for pair in one.futile} == {frozenset(pair) for pair in other.futile}


def judged(known: Sequence[Event], fates: Mapping[Names, Sequence[Fate]]) -> list[Event]:
    """Return events, and what becomes of each pair on the open wave: its fates in turn."""
    state = after(*known)
    wave, met = open_wave(state), Counter[Names]()
    events = [*known]
    for match in matches_of(state):
        pair = (match.pairing.a.entrant.entrant_id, match.pairing.b.entrant.entrant_id)
        if match.pairing.prompt.prompt_id in wave and pair in fates:
            events += become(match, fates[pair][met[pair] % len(fates[pair])])
            met[pair] += 1
    return events


def turns(fates: str) -> list[Fate]:
    """Return what becomes of pairs, a letter each: the first of a pair wins (a) or the second."""
    won: dict[str, Fate] = {"a": "a", "b": "b"}
    return [won[each] for each in fates]


ZOE_WINS: Final = {
    ("zoe", "amy"): turns("aaaaaaaaab"),
    ("zoe", "kim"): turns("aaaaaaaabb"),
    ("amy", "kim"): turns("ab"),
}


def cup(design: Mapping[str, object] | None = None) -> list[Event]:
    """Return a tournament of three entrants on 80 prompts, answered, with two looks."""
    events = opening(bank(80), n_looks=2, entrants=FOUR[:3], design=design)
    return [*events, *responses(after(*events))]


@cache
def half() -> tuple[Event, ...]:
    """Return that tournament with the verdicts on its first wave."""
    return tuple(judged(cup(), ZOE_WINS))


@pytest.mark.no_cover
def test_a_look_says_what_it_saw_and_decided() -> None:
    """The pairs of today's configurations, the better one first, and the wave's prompts."""
    state = after(*half())

    (found,) = look_now(state).dimensions

    assert {prompt.label for prompt in look_now(state).prompts} == {*open_wave(state)}
    assert (look_now(state).number, look_now(state).n_looks) == (1, 2)
    assert look_now(state).judge == judge_reference(state)
    assert (found.n_prompts, found.n_planned) == (40, 80)
    assert found.critical is not None
    assert {(pair.a.label, pair.b.label) for pair in found.decided} == {
        ("zoe", "amy"),
        ("zoe", "kim"),
    }
    assert found.decided[0].a == entrant_reference(FOUR[0])


@pytest.mark.no_cover
def test_a_second_look_tests_what_the_first_did_not_decide() -> None:
    """By all verdicts so far; it is the last, and nothing is futile then."""
    first_look = look_now(after(*half()))
    events = judged([*half(), first_look], {("amy", "kim"): turns("bbbbbbbbba")})

    second = look_now(after(*events))

    (found,) = second.dimensions
    assert (second.number, found.n_prompts) == (2, 80)
    assert [(pair.a.label, pair.b.label) for pair in found.decided] == [("kim", "amy")]
    assert found.futile == ()
    assert found.critical is not None
    assert found.critical < 2.3  # of a single pair


def test_with_a_baseline_only_pairs_with_it_are_tested() -> None:
    """The third pair was not planned, and its critical value is not paid for."""
    star = cup(design={"baseline": "zoe"})

    (found,) = look_now(after(*judged(star, ZOE_WINS))).dimensions
    (of_all,) = look_now(after(*half())).dimensions

    assert {"zoe"} == {pair.a.label for pair in found.decided}
    assert found.futile == ()
    assert of_all.critical != found.critical


def test_any_number_of_looks_takes_one_after_every_twenty_prompts() -> None:
    """Each by a critical value that holds at any time, and intervals are so much wider."""
    of_any = judged(cup(design={"looks": "any"}), ZOE_WINS)

    (planned,), (found,) = (look_now(after(*events)).dimensions for events in (half(), of_any))

    assert (look_now(after(*of_any)).n_looks, found.n_prompts) == (4, 20)
    assert found.critical is not None
    assert planned.critical is not None
    assert found.critical > planned.critical > 2
    assert found.widening > 1.3 > planned.widening


def test_what_looks_will_ask_is_forecast_of_pairs_that_none_stopped() -> None:
    """Where zoe wins all, only the other pair may be asked in both waves; few verdicts: nothing."""
    events = half()
    few = after(*judged(opening(bank(12), n_looks=2, entrants=FOUR[:3]), ZOE_WINS))

    early = waves_to_ask(after(*events), after(*events).dimensions[0])
    later = after(*events, look_now(after(*events)))
    late = waves_to_ask(later, later.dimensions[0])

    assert {*early} == {
        frozenset(pair) for pair in (("zoe", "amy"), ("zoe", "kim"), ("amy", "kim"))
    }
    assert {*early[frozenset(("zoe", "amy"))]} == {1}
    assert {*late} <= {frozenset(("amy", "kim"))}
    assert not waves_to_ask(few, few.dimensions[0])


def test_a_dimension_without_verdicts_has_no_look() -> None:
    """Where its prompts lack a gold answer, or all replies were unreadable."""
    rubrics = [rubric(), rubric("style", needs_gold=False)]
    prompts = [prompt(f"p{n}", gold=None) for n in range(4)]
    events = [*opening(prompts, n_looks=2, entrants=FOUR[:3], rubrics=rubrics)]
    events += responses(after(*events))

    assert look_now(after(*events)).dimensions == ()
    looked = look_now(after(*judged(events, ZOE_WINS)))
    assert [each.rubric.label for each in looked.dimensions] == ["style"]
    assert looked.dimensions[0].critical is None


def test_looks_are_compared_by_what_they_decide() -> None:
    """Not by the last digits of a critical value, which processors may compute otherwise."""
    look = look_now(after(*half()))
    (found,) = look.dimensions
    digits, less = (
        replace(look, dimensions=(replace(found, **changed),))
        for changed in ({"critical": 3.1}, {"decided": found.decided[:1]})
    )

    assert decides_alike(look, digits)
    assert not decides_alike(look, less)


@pytest.mark.no_cover
def test_a_few_tournaments_of_equals_are_decided_by_no_look() -> None:
    """The long run is in `data/coverage.md`."""
    assert false_share_of_stopped(equals(4), 4) == 0


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("strengths", "stops_futile", "least"),
    [
        (equals(4), False, 0.03),
        (equals(4), True, 0.0),
        (equals(8), False, 0.03),
        (blocks(4), True, 0.0),
        (blocks(8), True, 0.0),
    ],
    ids=["4", "4, futile stopped", "8", "blocks of 2", "blocks of 4"],
)
def test_equals_are_rarely_called_different(
    strengths: Floats, *, stops_futile: bool, least: float
) -> None:
    """In at most 6 % of 1,000 tournaments, and without futility about as often as is allowed."""
    n = 1_000 if len(strengths) == 4 else 300
    share = (
        false_share_of_stopped(strengths, n) if stops_futile else false_shares(strengths, n).looks
    )

    print(len(strengths), stops_futile, share)  # noqa: T201  # a figure to be read
    assert least - 0.01 <= share <= 0.06


@pytest.mark.no_cover
def test_what_looks_will_ask_is_forecast_from_a_pilot() -> None:
    """Nine of ten intervals are to hold; the long run is in `data/coverage.md`."""
    assert forecast_dollars(4, 200, 3).holds >= 2 / 3


def test_a_forecast_names_no_pair_without_an_error() -> None:
    """All ties: nothing is known of any difference."""
    battles = in_columns([("a", "b", 0.5, prompt) for prompt in range(30)])

    assert not waves_asked(battles, all_pairs(battles), Schedule(FOUR_LOOKS), 0.5)


@pytest.mark.nightly
@pytest.mark.parametrize(("n", "sd"), [(4, 120), (4, 200), (8, 150), (12, 150)])
def test_half_of_the_queries_find_nearly_all_that_all_find(n: int, sd: float) -> None:
    """Of four looks, against the same tournament asked in full."""
    found = spared(n, sd, 100 if n == 4 else 40)

    print(n, sd, found)  # noqa: T201  # a figure to be read
    assert found.asked <= 0.60
    assert found.kept >= 0.93


@pytest.mark.nightly
def test_intervals_hold_the_truth_after_stops() -> None:
    """Over all pairs together; none of a pair covers given that just it was stopped."""
    found = covered(SPREAD, 300)

    print(found)  # noqa: T201  # a figure to be read
    assert 0.93 <= found.of_pairs.mean() <= 0.98
    assert found.of_pairs.min() >= 0.92 - 0.02
    assert found.of_all >= 0.94 - 0.02
