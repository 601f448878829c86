"""What only a jury shows of its judges."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from projections.ratings.bradley_terry.component import ELO
from projections.ratings.judge_bias.several_judges import Families, family_of, jury_figures
from projections.results.judges import BiasRow
from tests.support.builders.juries import ENTRANTS, FAMILIES, Juror, judged
from tests.support.statistics import holds


def figures(
    jury: Sequence[Juror], seed: int = 1, families: Families = FAMILIES
) -> dict[str, dict[str, BiasRow]]:
    """Return each judge's figures by measure."""
    found = jury_figures(judged(np.random.default_rng(seed), jury), families)
    return {judge: {each.measure: each for each in own} for judge, own in found.items()}


@pytest.mark.no_cover
def test_a_judge_prefers_its_own_family_beyond_what_the_others_see() -> None:
    """In three of four intervals at least; who has no family there has no such figure."""
    held = 0
    for seed in range(4):
        found = figures([Juror("claude", own=0.5), Juror("owl"), Juror("human", skill=0.7)], seed)
        figure = found["claude"]["self-preference"]
        assert (figure.of, figure.unit, figure.n) == ("Claude", "Elo points", 2 * 100 * 4)
        held += holds(figure.ci95_low, 0.5 * ELO, figure.ci95_high)
        assert found["owl"]["self-preference"].value is None

    assert held >= 3


def test_each_judge_with_a_family_is_compared_with_the_others() -> None:
    """Two at once: ann gains before one, dan before the other does not."""
    found = figures([Juror("claude", own=1.0), Juror("gpt"), Juror("owl")])

    claude, gpt = (found[name]["self-preference"] for name in ("claude", "gpt"))
    assert (claude.of, gpt.of) == ("Claude", "GPT")
    assert claude.ci95_low is not None
    assert claude.ci95_low > 0
    assert holds(gpt.ci95_low, 0, gpt.ci95_high)


def test_nobody_is_accused_where_kin_may_be_unrecognised() -> None:
    """Where ann is not known for a Claude, what Claude's judge gives her seems GPT's disfavour.

    So her pairs are left out: on the others GPT's judge is as fair as it is.
    """
    jury = [Juror("claude", own=0.8), Juror("gpt"), Juror("owl")]
    unknown = Families({**FAMILIES.of_entrants, "ann": None}, FAMILIES.of_judges)

    found = figures(jury, families=unknown)

    gpt = found["gpt"]["self-preference"]
    assert gpt.of == "GPT (without ann: no family known)"
    assert holds(gpt.ci95_low, 0, gpt.ci95_high)
    claude = found["claude"]["self-preference"]
    assert claude.value is None
    assert str(claude.reason).startswith("no family is known of ann, which may be of its own")
    assert {each["skill"].value is None for each in found.values()} == {False}


def test_an_entrant_without_a_family_hides_no_self_preference_of_others() -> None:
    """What Claude's judge gives ann is seen though nobody knows what bob is."""
    unknown = Families({**FAMILIES.of_entrants, "bob": None}, FAMILIES.of_judges)

    found = figures([Juror("claude", own=1.0), Juror("owl")], families=unknown)

    figure = found["claude"]["self-preference"]
    assert (figure.of, figure.n) == ("Claude (without bob: no family known)", 2 * 100 * 3)
    assert figure.ci95_low is not None
    assert figure.ci95_low > 0


def test_a_judge_without_a_family_is_named() -> None:
    """Its own preference, which nobody looks for, may make another's figure."""
    known, nobody = FAMILIES, Families(dict.fromkeys(ENTRANTS), FAMILIES.of_judges)
    jury = [Juror("claude"), Juror("owl")]

    found, of_unknown = figures(jury, families=known), figures(jury, families=nobody)

    assert str(found["owl"]["self-preference"].reason).startswith("its name tells no family")
    assert found["claude"]["self-preference"].value is not None
    assert "self-preference" not in of_unknown["owl"]
    assert "may be of its own" in str(of_unknown["claude"]["self-preference"].reason)


def test_skills_remain_where_self_preference_is_not_determined() -> None:
    """Two entrants cannot tell the two apart, but there is the simpler model."""
    pairs = judged(np.random.default_rng(1), [Juror("owl"), Juror("claude")])
    two = pairs.where((pairs.a == 0) & (pairs.b == 3))

    skill, preference = jury_figures(two, FAMILIES)["claude"]

    assert (skill.measure, preference.measure) == ("skill", "self-preference")
    assert skill.value is not None
    assert preference.value is None


def test_one_judge_cannot_be_told_from_strength() -> None:
    """What it gives its family may be what they deserve; nor has it a skill beside nobody."""
    found = figures([Juror("claude", own=1.0)])

    assert [*found["claude"]] == ["self-preference"]
    figure = found["claude"]["self-preference"]
    assert figure.value is None
    assert figure.reason is not None
    assert "cannot be told from strength" in figure.reason


def test_judges_of_one_family_cannot_be_compared() -> None:
    """Both may prefer it."""
    found = figures([Juror("claude"), Juror("sonnet")])

    reasons = {found[name]["self-preference"].reason for name in found}
    assert reasons == {"no judge of another family judged the same pairs"}
    assert {found[name]["skill"].value is None for name in found} == {False}


def test_a_family_that_all_entrants_have_cannot_be_preferred() -> None:
    """There is nobody that it could be preferred to."""
    alike = Families(dict.fromkeys(ENTRANTS, "Claude"), FAMILIES.of_judges)

    found = figures([Juror("claude"), Juror("owl")], families=alike)

    assert found["claude"]["self-preference"].reason == "all entrants are of its family"


@pytest.mark.parametrize("score", [0.5, 1.0])
def test_what_the_verdicts_do_not_determine_has_a_reason(score: float) -> None:
    """All tied, or the first always better: nothing tells a judge from another."""
    pairs = judged(np.random.default_rng(1), [Juror("claude"), Juror("owl")], n_prompts=2)
    same = np.full(len(pairs), score)

    found = jury_figures(replace(pairs, forward=same, swapped=same), FAMILIES)

    for figure in (*found["claude"], found["owl"][0]):
        assert figure.value is None
        assert figure.reason is not None
        assert figure.reason.endswith("do not determine it")


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("claude-opus-4-1", "Claude"),
        ("gpt-4o-mini", "GPT"),
        ("chatgpt-4o-latest", "GPT"),
        ("openai/gpt-oss-120b", "GPT"),
        ("o3", "GPT"),
        ("gpt-big", "GPT"),
        ("GPT", "GPT"),
        ("gpt-neox-20b", None),
        ("gpt-j-6b", None),
        ("Qwen2.5-7B-Instruct-GPTQ-Int4", "Qwen"),
        ("command-line-tuned", None),
        ("yi-large", "Yi"),
        ("phi-mini", "Phi"),
        ("glm-air", "GLM"),
        ("command-light", "Command"),
        ("philosopher", None),
        ("models/gemini-2.5-pro", "Gemini"),
        ("meta-llama/Llama-3.1-8B-Instruct", "Llama"),
        ("codellama-7b", "Llama"),
        ("/data/weights/OLMo-2-1124-7B-Instruct/", "OLMo"),
        ("mixtral-8x7b", "Mistral"),
        ("deepseek-chat", "DeepSeek"),
        ("DeepSeek-R1-Distill-Qwen-7B", "Qwen"),
        ("/home/claude/weights/mine", None),
        ("reference", None),
        ("photo3", None),
    ],
)
def test_a_family_is_read_from_a_models_name(name: str, family: str | None) -> None:
    """Not from where its weights lie; of a distilled model it is what was trained."""
    assert family_of(name) == family


def test_the_first_name_that_tells_counts() -> None:
    """A folder is named after its weights, an entrant after what is tried."""
    assert family_of("/weights/qwen2.5", "tuned_like_claude") == "Qwen"
    assert family_of("/weights/final", "olmo_tuned") == "OLMo"
    assert family_of() is None
