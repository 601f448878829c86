"""What names an entrant, a judge, a rubric: their content, not their label or place."""

import pytest
from msgspec.structs import replace

from ledger.events.registration import SAMPLER, Adapter, TournamentOpened
from tests.support.builders.events import (
    entrant,
    hydra,
    judge,
    key,
    opened,
    prompt,
    registrations,
    rubric,
    shards,
)

ADAPTER = Adapter(path="adapters/tuned", digest=key("adapter"))
OTHER_ADAPTER = Adapter(path="adapters/tuned", digest=key("other adapter"))


@pytest.mark.parametrize(
    "changed",
    [
        {"weights_digest": key("other")},
        {"adapters": ()},
        {"adapters": (OTHER_ADAPTER,)},
        {"temperature": 0.7},
        {"max_new_tokens": 33},
        {"dtype": "bfloat16"},
    ],
    ids=str,
)
def test_whatever_changes_responses_changes_the_entrant(changed: dict[str, object]) -> None:
    """A response kept under a stale digest would be rated as one that was never given."""
    original = entrant("tuned", adapters=(ADAPTER,))

    other = entrant("tuned", **{"adapters": (ADAPTER,), **changed})

    assert other.digest != original.digest


def test_an_entrant_renamed_or_moved_answers_as_before() -> None:
    """A new label or folder must not pay for responses that are there."""
    original = entrant("tuned", weights_digest=key("weights"), adapters=(ADAPTER,))
    moved_adapter = replace(ADAPTER, path="elsewhere")

    moved = entrant(
        "renamed", weights="b", weights_digest=key("weights"), adapters=(moved_adapter,)
    )

    assert moved.digest == original.digest
    assert moved.content_digest != original.content_digest


def test_the_order_of_adapters_names_another_entrant() -> None:
    """Adapters are merged in order, and floating-point sums depend on it."""
    first = entrant("tuned", adapters=(ADAPTER, OTHER_ADAPTER))

    second = entrant("tuned", adapters=(OTHER_ADAPTER, ADAPTER))

    assert first.digest != second.digest


def test_an_entrant_without_heads_is_named_as_before_there_were_any() -> None:
    """Pinned: ledgers hold responses under this name, and they must not be generated again."""
    plain = entrant("tuned", adapters=(ADAPTER,), temperature=0.7)

    assert plain.digest == "21155ba7be243baee2677404252bcb1b5fdc035071108d1c02dd16810efb6a20"
    assert plain.content_digest == (
        "40c9d8388e3ccbf19fae8143c0d5989d0f15547c629ab959658c27a16d1ac640"
    )


@pytest.mark.parametrize("fields", [{}, {"hydra": hydra()}, {"revision": "1"}], ids=str)
def test_an_entrant_says_nothing_of_other_loaders(fields: dict[str, object]) -> None:
    """Its content's name must not change with each loader that is added."""
    said = entrant("any", **fields).fields.keys() & {"hydra", "revision"}

    assert said == fields.keys()


@pytest.mark.parametrize(
    "changed",
    [
        {"heads_depth": 3},
        {"security": shards("security", 3)},
        {"security": (*shards("security", 1), OTHER_ADAPTER)},
        {"security": shards("security")[::-1]},
        {"security": shards("robustness"), "robustness": shards("security")},
        {"robustness": ()},
        {"robustness": (*shards("robustness", 1), OTHER_ADAPTER)},
        {"uncertainty": None},
        {"uncertainty": OTHER_ADAPTER},
        {"bypass_jury": True},
        {"beta": 0.5},
    ],
    ids=str,
)
def test_whatever_a_hydra_decides_by_changes_the_entrant(changed: dict[str, object]) -> None:
    """Eighteen shards look alike; a response of other ones must not be taken for theirs."""
    given = {"robustness": shards("robustness"), "uncertainty": ADAPTER}
    original = entrant("poe", loader="hydra", hydra=hydra(**given))

    other = entrant("poe", loader="hydra", hydra=hydra(**{**given, **changed}))

    assert other.digest != original.digest


def test_a_hydra_renamed_or_moved_answers_as_before() -> None:
    """A new label or folder must not pay for responses that are there."""
    moved = tuple(replace(shard, path="elsewhere") for shard in shards("security"))
    original = entrant("poe", weights_digest=key("weights"), hydra=hydra())

    renamed = entrant("renamed", weights_digest=key("weights"), hydra=hydra(security=moved))

    assert renamed.digest == original.digest
    assert renamed.content_digest != original.content_digest


@pytest.mark.parametrize("fields", [{"temperature": 0.7}, {"hydra": hydra()}], ids=str)
def test_what_is_drawn_by_another_sampler_is_another_entrants(fields: dict[str, object]) -> None:
    """A seed gives other texts under it; older records, which name none, keep their texts."""
    first, second = (entrant("any", sampler=sampler, **fields) for sampler in (None, SAMPLER))

    assert first.digest != second.digest
    assert "sampler" not in first.fields


def test_a_greedy_entrant_keeps_its_responses_under_another_sampler() -> None:
    """It draws nothing, so nothing that it said must be generated again."""
    assert entrant("any").digest == entrant("any", sampler=SAMPLER).digest


def test_a_head_that_decodes_alone_is_not_renamed_by_what_a_jury_would_do() -> None:
    """Nothing is drafted and nothing multiplied where one head is sampled."""
    original = entrant("alone", hydra=hydra(bypass_jury=True))

    other = entrant("alone", hydra=hydra(bypass_jury=True, beta=0.5))

    assert other.digest == original.digest


@pytest.mark.parametrize("changed", [{"model": "chrF3"}, {"parameters": (("margin", 1.0),)}])
def test_whatever_changes_replies_changes_the_judge(changed: dict[str, object]) -> None:
    """Verdicts of another model must never be taken for this one's."""
    original = judge("reference")

    other = judge("reference", **changed)
    renamed = judge("renamed")

    assert other.digest != original.digest
    assert renamed.digest == original.digest


def test_a_judge_replies_alike_in_batches_or_one_by_one() -> None:
    """A pilot that was judged online is not paid for again by the batches of the headline."""
    batches = judge("opus", provider="anthropic-batch", model="opus")
    online = judge("opus", provider="anthropic", model="opus")
    elsewhere = judge("opus", provider="endpoint", model="opus")

    assert batches.digest == online.digest
    assert elsewhere.digest != online.digest
    assert batches.content_digest != online.content_digest


def test_a_judge_is_asked_for_a_line_unless_its_settings_say_otherwise() -> None:
    """Judges on old ledgers have no protocol among their parameters."""
    schema = judge(parameters=(("effort", "low"), ("protocol", "schema")))

    assert judge().protocol == "line"
    assert schema.protocol == "schema"
    assert schema.digest != judge(parameters=(("effort", "low"), ("protocol", "line"))).digest


def test_a_rubric_is_named_by_its_text() -> None:
    """A corrected rubric asks again, whatever its version line says."""
    original = rubric("factuality", text="Prefer facts.")

    corrected = rubric("factuality", text="Prefer facts!")
    renamed = rubric("renamed", text="Prefer facts.")

    assert corrected.digest != original.digest
    assert renamed.digest == original.digest


def test_a_registration_is_known_by_label_and_content() -> None:
    """Registered again unchanged it is the same fact; corrected it is another."""
    things = registrations([prompt("p1")], [rubric("style")], [entrant("base")], [judge("ref")])

    keys = [each.natural_key for each in things]

    assert keys == [
        ("p1", prompt("p1").content_digest),
        ("style", rubric("style").content_digest),
        ("base", entrant("base").content_digest),
        ("ref", judge("ref").content_digest),
    ]


def test_openings_of_a_tournament_are_numbered() -> None:
    """Settings that come back after a change must open the tournament once more."""
    first, second = opened(opening=1)[0], opened(opening=2)[0]

    assert isinstance(first, TournamentOpened)
    assert first.natural_key == ("1",)
    assert second.natural_key == ("2",)


@pytest.mark.parametrize(
    ("provider", "is_batched"), [("anthropic", False), ("anthropic-batch", True)]
)
def test_a_judge_is_asked_in_batches_if_its_provider_says_so(
    provider: str, is_batched: bool
) -> None:
    """The company is the same either way, so the verdicts are, too."""
    asked = judge(provider=provider)

    assert asked.is_batched is is_batched
    assert asked.company == "anthropic"
