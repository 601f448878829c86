"""The match list."""

from collections import Counter

from msgspec.structs import replace

from ledger.identity import PromptId
from projections.tournament.matches import (
    Pairing,
    match_of,
    pairings,
    planned_response,
    planned_responses,
)
from projections.tournament.state import Tournament
from tests.builders import entrant, hydra, judge, known, opened, prompt, responses, rubric
from tests.projections.worlds import RUBRICS, answered, cup, everything, matches_of, planned

SHIPPED = (("recall", 24), ("vignette", 69), ("curated", 50))
PILOT = (("recall", 8), ("vignette", 24), ("curated", 18))


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


def place(pairing: Pairing) -> tuple[str, str, str, str]:
    """Say which prompt, dimension and entrants a pairing is of."""
    return (
        pairing.prompt.prompt_id,
        pairing.rubric.dimension,
        pairing.a.entrant.entrant_id,
        pairing.b.entrant.entrant_id,
    )


def test_the_headline_has_as_many_pairs_as_the_customers() -> None:
    """The cost is planned from these numbers: two judge queries for each pair."""
    counts = Counter(str(each.rubric.dimension) for each in planned(of_sizes(SHIPPED)))

    assert counts == {"factuality": 558, "calibration": 858, "clinical_utility": 858}


def test_the_pilot_has_as_many_pairs_as_the_customers() -> None:
    """The pilot's price is what a user agrees to before the headline's."""
    counts = Counter(str(each.rubric.dimension) for each in planned(of_sizes(PILOT)))

    assert counts == {"factuality": 192, "calibration": 300, "clinical_utility": 300}


def test_pairings_are_in_the_customers_order() -> None:
    """Prompts, then dimensions, then pairs in roster order: --limit takes the first of these."""
    tournament = known(
        *opened(
            prompts=[prompt("p2"), prompt("p1")],
            rubrics=[rubric("utility"), rubric("factuality")],
            entrants=[entrant("zoe"), entrant("amy"), entrant("kim")],
        )
    )

    places = [place(pairing) for pairing in planned(tournament)]

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


def test_a_prompt_without_gold_is_paired_where_none_is_needed() -> None:
    """One curated prompt must neither stop a factuality run nor be judged without a reference."""
    tournament = known(
        *opened(
            prompts=[prompt("p1", gold=None), prompt("p2")],
            rubrics=RUBRICS,
        )
    )

    places = [place(pairing)[:2] for pairing in planned(tournament)]

    assert places == [("p1", "utility"), ("p2", "factuality"), ("p2", "utility")]


def test_a_match_needs_both_responses() -> None:
    """Pairings are planned before generation, and become matches as responses come in."""
    opening = opened()
    base, tuned = responses(known(*opening))

    found = [
        match_of(tournament, planned(tournament)[0], judge())
        for tournament in (known(*opening), known(*opening, base), known(*opening, tuned))
    ]

    assert found == [None, None, None]
    assert matches_of(known(*opening, base, tuned))[0].response_b == tuned


def test_an_outcome_is_named_by_the_questions_it_follows_from() -> None:
    """Positions change when ledgers merge; the two query keys do not."""
    (match,) = matches_of(known(*answered(opened())))

    key = match.key(judge().judge_id, "swap-consistent")

    assert (key.forward, key.swapped) == (match.forward.query_key, match.swapped.query_key)
    assert key[:6] == ("factuality", "p1", "base", "tuned", "reference", "swap-consistent")


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
