"""The panel: which judges a configuration describes, and who is asked in a mode."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from commands.entrants.weights import HubSnapshot
from commands.errors import ConfigurationError
from commands.judging.panel import (
    REFERENCE_MODEL,
    id_of_mode,
    judge_of_mode,
    panel_of,
    weights_of,
)
from commands.settings.schema import Settings
from ledger.events.registration import JudgeSettings
from ledger.identity import JudgeId
from tests.support.builders.commands import settings, write_weights

PAID: Mapping[str, object] = {
    "provider": "anthropic-batch",
    "pilot_model": "small",
    "model": "large",
}
SERVED = {"id": "served", "provider": "endpoint", "model": "org/judge", "base_url": "http://[::1]"}


def names(chosen: Settings, folder: Path = Path()) -> list[str]:
    """Return who is on the panel."""
    return [judge.judge_id for judge in panel_of(chosen, folder)]


def with_weights(folder: Path, *paths: str) -> Path:
    """Write weights that differ."""
    for n, path in enumerate(paths):
        write_weights(folder / path, first_byte=n)
    return folder


def test_an_effort_that_the_model_does_not_take_is_refused() -> None:
    """Anthropic would reject each request; whoever says none is understood."""
    with pytest.raises(ConfigurationError, match='haiku-4-5 takes no effort; set effort = "none"'):
        panel_of(settings(judge={**PAID, "model": "claude-haiku-4-5"}), Path())

    mute = settings(judge={**PAID, "model": "claude-haiku-4-5", "effort": "none"})
    assert names(mute) == ["claude-haiku-4-5", "small"]


def test_the_offline_judge_is_the_whole_panel_by_default() -> None:
    """A tournament needs no key to begin with."""
    (judge,) = panel_of(settings(), Path())

    assert judge == JudgeSettings(
        judge_id=JudgeId("reference"),
        provider="reference",
        model=REFERENCE_MODEL,
        parameters=(("tie_band", 1.0),),
    )


def test_each_mode_has_its_model() -> None:
    """The pilot asks a cheap judge; the headline's comes first on the panel."""
    chosen = settings(judge=PAID)

    assert names(chosen) == ["large", "small"]
    assert judge_of_mode(chosen, "pilot", Path()).model == "small"
    assert judge_of_mode(chosen, "headline", Path()).model == "large"


def test_one_model_for_both_modes_is_one_judge() -> None:
    """What the pilot paid for, the headline need not ask."""
    assert names(settings(judge={**PAID, "pilot_model": "large"})) == ["large"]
    assert names(settings(judge={"provider": "anthropic", "model": "large"})) == ["large"]


def test_all_that_determines_a_reply_is_in_the_judge() -> None:
    """A reply under another effort, limit or protocol is another judge's."""
    judge = judge_of_mode(settings(judge=PAID), "headline", Path())

    others: list[dict[str, object]] = [{"effort": "max"}, {"max_tokens": 1}, {"protocol": "schema"}]
    digests = {
        judge_of_mode(settings(judge={**PAID, **other}), "headline", Path()).digest
        for other in others
    }
    assert judge.parameters == (("effort", "low"), ("max_tokens", 4096.0), ("protocol", "line"))
    assert len(digests - {judge.digest}) == 3


@pytest.mark.parametrize(
    ("judge", "other"),
    [
        *((PAID, {name: 2}) for name in ("concurrency", "max_usd", "retries")),
        (PAID, {"provider": "anthropic"}),
        (PAID, {"cache": "1h"}),
        (SERVED, {"base_url": "http://[::1]:8001"}),
        (SERVED, {"api_key_env": "MISTRAL_API_KEY"}),
        (SERVED, {"timeout_s": 5}),
    ],
)
def test_how_and_where_judges_are_asked_makes_no_other_judge(
    judge: Mapping[str, object], other: Mapping[str, object]
) -> None:
    """Smaller batches, or the same weights behind another port, must not buy verdicts again."""
    section = {name: each for name, each in judge.items() if name != "id"}

    before, now = (
        judge_of_mode(settings(judge={**section, **change}), "headline", Path())
        for change in ({}, other)
    )

    assert now.digest == before.digest


def test_the_jury_follows_the_tournaments_judges() -> None:
    """The first of the panel is who is asked when nobody says otherwise."""
    jury = [SERVED, {**SERVED, "id": "again", "protocol": "schema"}]

    panel = panel_of(settings(judge=PAID, jury=jury), Path())

    assert [judge.judge_id for judge in panel] == ["large", "small", "served", "again"]
    assert [judge.protocol for judge in panel] == ["line", "line", "line", "schema"]
    assert panel[2].model == "org/judge"
    assert panel[2].parameters == (("max_tokens", 4096.0), ("protocol", "line"))


def test_what_determines_a_servers_replies_makes_another_judge() -> None:
    """It is recorded with the judge, and a body's order of keys is no difference."""
    changes: list[dict[str, object]] = [
        {"extra_body": {"temperature": 1.0}},
        {"effort": "low"},
        {"extra_body": {"b": {"y": 1, "x": 2}, "a": True}},
        {"extra_body": {"a": True, "b": {"x": 2, "y": 1}}},
    ]

    plain, *changed = (
        panel_of(settings(jury=[{**SERVED, **each}]), Path())[-1] for each in ({}, *changes)
    )

    assert [each.parameters[2:] for each in changed] == [
        (("extra_body", '{"temperature":1.0}'),),
        (("reasoning_effort", "low"),),
        (("extra_body", '{"a":true,"b":{"x":2,"y":1}}'),),
        (("extra_body", '{"a":true,"b":{"x":2,"y":1}}'),),
    ]
    assert len({each.digest for each in (plain, *changed)}) == 4


def test_two_judges_of_one_name_are_refused() -> None:
    """Tables and outcomes tell judges apart by their name."""
    jury = [{**SERVED, "id": "large"}]

    with pytest.raises(ConfigurationError, match="two judges are named 'large'; give"):
        panel_of(settings(judge=PAID, jury=jury), Path())


@pytest.mark.parametrize(
    ("first", "second", "parts"),
    [
        (SERVED, {"base_url": "http://[::1]:8001"}, "model, max_tokens, protocol"),
        (SERVED, {"base_url": "http://b", "id": "large"}, "model, max_tokens, protocol"),
        (PAID, {"provider": "anthropic"}, "model, effort, max_tokens, protocol"),
    ],
    ids=["endpoint", "endpoint, under one name", "anthropic"],
)
def test_one_judge_under_two_names_is_refused(
    first: Mapping[str, object], second: Mapping[str, object], parts: str
) -> None:
    """It would be asked once and counted twice: kappa would be 1, a majority one judge's."""
    judge = {"pilot_model": "large", "model": "large"}
    given = {key: value for key, value in first.items() if key in {"provider", "base_url"}}
    juror = {"id": "other", "model": "large", **given, **second}

    with pytest.raises(ConfigurationError) as caught:
        panel_of(settings(judge={**judge, **given}, jury=[juror]), Path())

    (fault,) = caught.value.faults
    name = second.get("id", "other")
    assert fault.startswith(f"judges 'large' and {name!r} are the same judge: ")
    assert f"remove one, or change one of {parts}; " in fault


def test_a_server_without_an_address_is_refused() -> None:
    """Any default would be somebody's, and would be asked with the user's responses."""
    jury = [{key: value for key, value in SERVED.items() if key != "base_url"}]

    with pytest.raises(ConfigurationError, match="judge 'served': provider 'endpoint' needs a"):
        panel_of(settings(jury=jury), Path())


def test_a_judge_of_weights_is_known_by_their_content(tmp_path: Path) -> None:
    """Moved weights are the same judge; others under the same name are not."""
    folder = with_weights(tmp_path, "here/judge", "there/judge")
    write_weights(folder / "moved" / "judge", first_byte=0)

    here, there, moved = (
        judge_of_mode(
            settings(judge={"provider": "hf", "model": f"{where}/judge"}),
            "headline",
            folder,
        )
        for where in ("here", "there", "moved")
    )

    assert (here.judge_id, here.model) == ("judge", "judge")
    assert here == moved
    assert here.digest != there.digest
    assert dict(here.parameters).keys() == {"weights", "dtype", "max_tokens", "protocol"}


def test_weights_on_the_hub_are_found_as_those_of_entrants(tmp_path: Path) -> None:
    """By name and revision; the judge is the same as with a copy in a folder of that name."""
    write_weights(tmp_path / "cache" / "c0ffee")
    shutil.copytree(tmp_path / "cache" / "c0ffee", tmp_path / "local" / "large")
    asked = []

    def fetch(name: str, revision: str | None) -> HubSnapshot:
        asked.append((name, revision))
        return HubSnapshot(tmp_path / "cache" / "c0ffee", "c0ffee")

    def judging(model: str) -> Settings:
        return settings(judge={"provider": "hf", "model": model})

    chosen = judging("org/large@v1")
    (named,) = panel_of(chosen, tmp_path, fetch)

    assert named == panel_of(judging("local/large"), tmp_path)[0]
    assert weights_of(chosen, named, tmp_path, fetch) == tmp_path / "cache" / "c0ffee"
    assert {*asked} == {("org/large", "v1")}
    assert id_of_mode(chosen, "headline", tmp_path) == "large"
