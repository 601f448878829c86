"""What names an entrant, a judge, a rubric: their content, not their label or place."""

import pytest
from msgspec.structs import replace

from ledger.events.registration import SAMPLER, Adapter, Entrant
from tests.support.builders.events import entrant, hydra, judge, key, rubric, shards

ADAPTER = Adapter(path="adapters/tuned", digest=key("adapter"))
OTHER = Adapter(path="adapters/tuned", digest=key("other adapter"))
PLAIN = entrant("tuned", adapters=(ADAPTER, OTHER))
HEADS = hydra(robustness=shards("robustness"), uncertainty=ADAPTER)
POE = entrant("poe", loader="hydra", hydra=HEADS)
BATCHES = judge("opus", provider="anthropic-batch", model="opus")


HYDRAS: list[dict[str, object]] = [
    {"heads_depth": 3},
    {"security": shards("security", 3)},
    {"security": (*shards("security", 1), OTHER)},
    {"security": shards("security")[::-1]},
    {"security": shards("robustness"), "robustness": shards("security")},
    {"robustness": ()},
    {"robustness": (*shards("robustness", 1), OTHER)},
    {"uncertainty": None},
    {"uncertainty": OTHER},
    {"bypass_jury": True},
    {"beta": 0.5},
]


@pytest.mark.parametrize(
    ("original", "changed"),
    [
        (PLAIN, {"weights_digest": key("other")}),
        (PLAIN, {"adapters": ()}),
        (PLAIN, {"adapters": (OTHER, ADAPTER)}),  # they are merged in order
        (PLAIN, {"temperature": 0.7}),
        (PLAIN, {"max_new_tokens": 33}),
        (PLAIN, {"dtype": "bfloat16"}),
        (PLAIN, {"hydra": hydra()}),
        *((POE, {"hydra": replace(HEADS, **each)}) for each in HYDRAS),
    ],
    ids=str,
)
def test_whatever_changes_responses_changes_the_entrant(
    original: Entrant, changed: dict[str, object]
) -> None:
    """A response kept under a stale digest would be rated as one that was never given."""
    assert replace(original, **changed).digest != original.digest


MOVED = tuple(replace(shard, path="elsewhere") for shard in shards("security"))
ALONE = replace(POE, hydra=replace(HEADS, bypass_jury=True))


@pytest.mark.parametrize(
    ("original", "other"),
    [
        (PLAIN, replace(PLAIN, entrant_id="renamed", weights="elsewhere")),
        (PLAIN, replace(PLAIN, adapters=(replace(ADAPTER, path="elsewhere"), OTHER))),
        (POE, replace(POE, hydra=replace(HEADS, security=MOVED))),
        (ALONE, replace(ALONE, hydra=replace(HEADS, bypass_jury=True, beta=0.5))),
        (PLAIN, replace(PLAIN, sampler=SAMPLER)),
    ],
    ids=["renamed", "adapter moved", "shards moved", "no jury to multiply", "greedy draws nothing"],
)
def test_what_changes_no_response_pays_for_none_again(original: Entrant, other: Entrant) -> None:
    """The whole content has another name all the same."""
    digests = [(each.digest, each.content_digest) for each in (original, other)]

    assert digests[0][0] == digests[1][0]
    assert digests[0][1] != digests[1][1]


def test_an_entrant_without_heads_is_named_as_before_there_were_any() -> None:
    """Pinned: ledgers hold responses under this name, and they must not be generated again."""
    plain = entrant("tuned", adapters=(ADAPTER,), temperature=0.7)

    assert plain.digest == "21155ba7be243baee2677404252bcb1b5fdc035071108d1c02dd16810efb6a20"
    assert plain.content_digest == (
        "40c9d8388e3ccbf19fae8143c0d5989d0f15547c629ab959658c27a16d1ac640"
    )


@pytest.mark.parametrize("fields", [{"temperature": 0.7}, {"hydra": hydra()}], ids=str)
def test_what_is_drawn_by_another_sampler_is_another_entrants(fields: dict[str, object]) -> None:
    """A seed gives other texts under it; older records, which name none, keep their texts."""
    first, second = (entrant("any", sampler=sampler, **fields) for sampler in (None, SAMPLER))

    assert first.digest != second.digest


def test_a_judge_is_named_by_what_determines_its_replies() -> None:
    """Verdicts of another model must not be taken for this one's; batches reply as one by one."""
    original = judge("reference")
    online = judge("opus", provider="anthropic", model="opus")
    elsewhere = judge("opus", provider="endpoint", model="opus")

    assert judge("renamed").digest == original.digest
    assert judge("reference", model="chrF3").digest != original.digest
    assert judge("reference", parameters=(("margin", 1.0),)).digest != original.digest
    assert BATCHES.digest == online.digest != elsewhere.digest
    assert BATCHES.content_digest != online.content_digest
    assert (BATCHES.is_batched, online.is_batched, BATCHES.company) == (True, False, "anthropic")


def test_a_judge_is_asked_for_a_line_unless_its_settings_say_otherwise() -> None:
    """Judges on old ledgers have no protocol among their parameters."""
    schema = judge(parameters=(("effort", "low"), ("protocol", "schema")))

    assert judge().protocol == "line"
    assert schema.protocol == "schema"
    assert schema.digest != judge(parameters=(("effort", "low"), ("protocol", "line"))).digest


def test_a_rubric_is_named_by_its_text() -> None:
    """A corrected rubric asks again, whatever its version line says."""
    original = rubric("factuality", text="Prefer facts.")

    assert rubric("factuality", text="Prefer facts!").digest != original.digest
    assert rubric("renamed", text="Prefer facts.").digest == original.digest
