"""The match list, the pilot's prompts, and seeds of responses."""

import dataclasses
import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ledger.events.registration import Prompt
from ledger.identity import PromptId
from projections.fold import fold
from projections.tournament.bank import pilot_prompts, proportional_strata, recorded_pilot
from projections.tournament.folding import tournament_of
from projections.tournament.matches import (
    Pairing,
    keep_matches,
    match_of,
    matches,
    pairings,
    planned_response,
    planned_responses,
    prompt_seed,
    queries_to,
)
from projections.tournament.state import Tournament
from tests.support.builders.events import (
    STREAM,
    entrant,
    hydra,
    judge,
    known,
    opened,
    prompt,
    recorded,
    responses,
    rubric,
)
from tests.support.builders.worlds import (
    answered,
    cup,
    everything,
    history,
    matches_of,
    planned_pairings,
)


def of_sizes(sizes: tuple[tuple[str, int], ...]) -> Tournament:
    """Return four entrants on a bank in which curated prompts have no gold answer."""
    prompts = [
        prompt(f"{source}-{n}", source=source, gold=None if source == "curated" else "aspirin")
        for source, size in sizes
        for n in range(size)
    ]
    rubrics = [
        rubric("factuality"),
        rubric("calibration", needs_gold=False),
        rubric("clinical_utility", needs_gold=False),
    ]
    roster = [entrant(name) for name in ("base", "security", "robust", "poe")]
    return known(*opened(prompts=prompts, rubrics=rubrics, entrants=roster))


def with_baseline(tournament: Tournament, name: str | None) -> Tournament:
    """Return a tournament whose settings name a baseline."""
    assert tournament.opening is not None
    configuration = json.dumps({"judging": {"baseline": name}})
    return dataclasses.replace(
        tournament, opening=replace(tournament.opening, configuration=configuration)
    )


@given(st.sampled_from(("base", "security", "robust", "poe")))
def test_with_a_baseline_the_others_meet_it_alone(name: str) -> None:
    """Three pairs instead of six; those that are planned are the same as without it."""
    tournament = of_sizes((("recall", 2), ("curated", 1)))
    prompts = [each.prompt_id for each in tournament.bank]

    planned = pairings(with_baseline(tournament, name), prompts)

    everybody = pairings(tournament, prompts)
    assert planned == tuple(each for each in everybody if name in each.entrants)
    assert 2 * len(planned) == len(everybody)
    assert pairings(with_baseline(tournament, None), prompts) == everybody


def place(pairing: Pairing) -> tuple[str, str, str, str]:
    """Say which prompt, dimension and entrants a pairing is of."""
    return (
        pairing.prompt.prompt_id,
        pairing.rubric.dimension,
        pairing.a.entrant.entrant_id,
        pairing.b.entrant.entrant_id,
    )


def test_pairings_are_in_the_customers_order() -> None:
    """Prompts, then dimensions, then pairs in roster order: --limit takes the first of these."""
    tournament = known(
        *opened(
            prompts=[prompt("p2"), prompt("p1")],
            rubrics=[rubric("utility"), rubric("factuality")],
            entrants=[entrant("zoe"), entrant("amy"), entrant("kim")],
        )
    )

    places = [place(pairing) for pairing in planned_pairings(tournament)]

    assert places == [
        (prompt_id, dimension, *pair)
        for prompt_id in ("p2", "p1")
        for dimension in ("utility", "factuality")
        for pair in (("zoe", "amy"), ("zoe", "kim"), ("amy", "kim"))
    ]


def test_only_the_chosen_prompts_are_paired() -> None:
    """A pilot must not plan, and pay for, the rest of the bank."""
    tournament = known(*cup())
    chosen = {PromptId("p2"), PromptId("not in the bank")}

    assert {each.prompt.prompt_id for each in planned_responses(tournament, chosen)} == {"p2"}
    assert {each.prompt.prompt_id for each in pairings(tournament, chosen)} == {"p2"}


def test_a_match_needs_both_responses() -> None:
    """Pairings are planned before generation, and become matches as responses come in."""
    opening = opened()
    base, tuned = responses(known(*opening))

    found = [
        match_of(tournament, planned_pairings(tournament)[0], judge())
        for tournament in (known(*opening), known(*opening, base), known(*opening, tuned))
    ]

    assert found == [None, None, None]
    assert matches_of(known(*opening, base, tuned))[0].response_b == tuned


def test_before_it_is_opened_a_tournament_has_no_match() -> None:
    """A judge is told by the instructions of the opening."""
    closed = Tournament(STREAM)
    (pairing,) = planned_pairings(known(*answered(opened())))

    assert match_of(closed, pairing, judge()) is None
    assert not [*matches(closed, [PromptId("p1")], judge())]


def test_the_seed_of_the_opening_moves_every_response() -> None:
    """Another [generation] seed asks for other responses, the same for every entrant."""
    opening, *registered = opened()
    moved = replace(opening, generation_seed=5)

    here, there = known(opening, *registered), known(moved, *registered)

    seeds = [
        [cell.seed for cell in planned_responses(each, everything(each))] for each in (here, there)
    ]
    assert seeds == [[2053764746] * 2, [2053764751] * 2]


def test_the_seed_names_the_response_of_whoever_draws_by_it() -> None:
    """A greedy Hydra still draws the head that drafts; greedy weights draw nothing at all."""
    opening, *registered = opened(
        entrants=[
            entrant("greedy"),
            entrant("sampled", temperature=0.98),
            entrant("poe", hydra=hydra()),
        ]
    )
    here, there = (
        known(opening, *registered),
        known(replace(opening, generation_seed=5), *registered),
    )

    keys = [
        [cell.response_key for cell in planned_responses(each, everything(each))]
        for each in (here, there)
    ]

    assert [now == then for now, then in zip(*keys, strict=True)] == [True, False, False]


def test_a_cell_can_be_named_before_anything_is_opened() -> None:
    """What a response would be called follows from the entrant and the prompt alone."""
    unopened = planned_response(known(), entrant(), prompt())

    assert unopened == planned_response(known(*opened()), entrant(), prompt())


# Positions from 0 in a bank of 24, 69 and 50 prompts, for strata of 8, 24 and 18 and the default
# seed; checked against the digest of the pilot's ids that the customer published.
POSITIONS = [
    *(1, 2, 10, 11, 13, 14, 20, 23),
    *(25, 27, 28, 35, 36, 37, 38, 39, 40, 44, 49, 53),
    *(57, 59, 61, 62, 65, 66, 67, 74, 77, 82, 83, 88),
    *(94, 95, 99, 102, 104, 105, 106, 107, 116),
    *(117, 119, 129, 130, 131, 134, 136, 138, 141),
]
N_SHIPPED = {"recall": 24, "vignette": 69, "curated": 50}


def bank(sizes: dict[str, int]) -> list[Prompt]:
    """Return a bank of so many prompts per source, one source after the other."""
    sources = [source for source, size in sizes.items() for _ in range(size)]
    return [prompt(str(n), source=source) for n, source in enumerate(sources)]


def test_the_pilot_is_the_one_of_the_customer() -> None:
    """A pilot on other prompts could not be compared with the one that was published."""
    chosen = pilot_prompts(bank(N_SHIPPED), {"recall": 8, "vignette": 24, "curated": 18})

    assert [int(prompt_id) for prompt_id in chosen] == POSITIONS


def test_the_shipped_bank_shares_its_pilot_as_the_customer_does() -> None:
    """Strata are left out of most configurations, and then follow from the bank."""
    strata = proportional_strata(bank(N_SHIPPED), 50)

    assert strata == {"recall": 8, "vignette": 24, "curated": 18}


def test_another_seed_draws_another_pilot() -> None:
    """A user who changes the seed must not find the same prompts under another name."""
    strata = {"recall": 8}

    first = pilot_prompts(bank(N_SHIPPED), strata, seed=1)
    second = pilot_prompts(bank(N_SHIPPED), strata, seed=2)

    assert len(first) == len(second) == 8
    assert first != second


@pytest.mark.parametrize("source", ["recall", "unheard-of"])
def test_a_stratum_larger_than_its_source_is_refused(source: str) -> None:
    """A smaller pilot than the one asked for would pass for it without a word."""
    prompts = bank({"recall": 2})

    with pytest.raises(ValueError, match=f"3 prompts of source '{source}'") as caught:
        pilot_prompts(prompts, {source: 3})

    there = len([each for each in prompts if each.source == source])
    assert str(caught.value).endswith(f"the bank has {there}; lower [pilot] size or strata")


@given(data=st.data(), seed=st.integers(min_value=0, max_value=2**32))
def test_each_stratum_is_drawn_whole_and_in_bank_order(data: st.DataObject, seed: int) -> None:
    """No prompt twice, none of another source, and the same order as the headline run."""
    prompts = data.draw(st.permutations(bank({"recall": 4, "vignette": 6, "curated": 5})))
    strata = {"vignette": data.draw(st.integers(0, 6)), "recall": data.draw(st.integers(0, 4))}

    chosen = pilot_prompts(prompts, strata, seed=seed)

    drawn = [each for each in prompts if each.prompt_id in chosen]
    assert chosen == tuple(each.prompt_id for each in drawn)
    for source, size in strata.items():
        assert sum(each.source == source for each in drawn) == size


@given(counts=st.lists(st.integers(1, 12), min_size=1, max_size=5), share=st.fractions(0, 1))
def test_shares_are_those_of_the_largest_remainder(counts: list[int], share: Fraction) -> None:
    """Every place is given, no source is more than one off, and no source is overdrawn."""
    sizes = {f"source {n}": count for n, count in enumerate(counts)}
    size = int(share * sum(counts))

    strata = proportional_strata(bank(sizes), size)

    exact = {source: Fraction(size * count, sum(counts)) for source, count in sizes.items()}
    assert sum(strata.values()) == size
    assert all(abs(strata[source] - exact[source]) < 1 for source in sizes)
    assert all(strata[source] <= sizes[source] for source in sizes)


def test_equal_remainders_go_to_the_first_in_bank_order() -> None:
    """4/3, 1/3 and 4/3 have equal remainders; rounded to floats, the second would win."""
    strata = proportional_strata(bank({"first": 4, "second": 1, "third": 4}), 3)

    assert strata == {"first": 2, "second": 0, "third": 1}


@pytest.mark.parametrize(
    ("pilot", "n_prompts"),
    [
        ({"size": 50, "seed": 20260427, "strata": None}, 50),
        ({"size": 50, "seed": 20260427, "strata": {"recall": 3}}, 3),
        ({"size": 144, "seed": 20260427, "strata": None}, 0),
        (None, 0),
    ],
)
def test_a_pilot_is_drawn_again_from_what_was_recorded(
    pilot: dict[str, object] | None, n_prompts: int
) -> None:
    """A bank that is too small for its pilot, and a record without one, have none to read."""
    configuration = {} if pilot is None else {"pilot": pilot}

    assert len(recorded_pilot(bank(N_SHIPPED), configuration)) == n_prompts


@pytest.mark.parametrize(
    ("prompt_id", "seed"),
    [
        ("srcA_00008", 3661902417),
        ("srcB_00001", 1037086922),
        ("srcC_001", 1428314754),
        ("p1", 2053764746),
    ],
)
def test_seeds_equal_those_of_the_customers_harness(prompt_id: str, seed: int) -> None:
    """Sampled entrants draw as they did before, so old and new responses can be compared."""
    assert prompt_seed(PromptId(prompt_id)) == seed


@given(prompt_id=st.text(), base=st.integers(min_value=0), sample=st.integers(min_value=0))
def test_every_seed_fits_a_random_generator(prompt_id: str, base: int, sample: int) -> None:
    """Generators refuse seeds outside 32 bits, and events refuse to hold them."""
    seed = prompt_seed(PromptId(prompt_id), base=base, sample=sample)

    assert 0 <= seed < 2**32


def test_the_base_and_the_sample_move_the_seed() -> None:
    """A user who asks for other draws, or for a second response, gets other random numbers."""
    prompt_id = PromptId("p1")

    seeds = [
        prompt_seed(prompt_id),
        prompt_seed(prompt_id, base=10),
        prompt_seed(prompt_id, sample=1),
    ]

    assert seeds == [2053764746, 2053764756, 2053764747]


def test_a_judge_is_asked_in_both_orders_of_every_pair_with_both_responses() -> None:
    """Of a pair with a response missing nothing can be asked yet."""
    opening = opened(prompts=[prompt("p1"), prompt("p2")])
    *partly, last = answered(opening)
    prompts = [PromptId("p1"), PromptId("p2")]

    every, some = (
        [each.query_key for each in queries_to(known(*events), prompts, judge())]
        for events in ([*partly, last], partly)
    )

    both_orders = [
        each.query_key
        for match in matches_of(known(*partly, last))
        for each in (match.forward, match.swapped)
    ]
    assert every == both_orders
    assert len(some) == len(every) - 2
    assert set(some) < set(every)


def test_while_a_judge_is_at_work_matches_stay_known() -> None:
    """Their queries' keys take most of the time that a view of a long tournament takes."""
    events = history(cup(), "a", "b", "tie")
    before = known(*events[:-3])
    after = fold(tournament_of(STREAM), recorded(events)[-3:], before)
    prompts = frozenset(each.prompt_id for each in before.bank)
    found = matches(before, prompts, before.panel[0])

    assert keep_matches(before, after)
    assert matches(after, prompts, after.panel[0]) is found
    assert after.verdicts != before.verdicts


def test_matches_are_new_once_a_response_is() -> None:
    """What was known would lack it."""
    opening = cup()
    before = known(*opening)
    news = recorded([*opening, *responses(before)])[len(opening) :]
    after = fold(tournament_of(STREAM), news, before)
    prompts = frozenset(each.prompt_id for each in before.bank)
    assert not any(match for _, match in matches(before, prompts, before.panel[0]))

    assert not keep_matches(before, after)
    assert all(match for _, match in matches(after, prompts, after.panel[0]))
