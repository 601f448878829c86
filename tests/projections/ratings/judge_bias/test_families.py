"""Families of models, by their names."""

import pytest

from projections.ratings.judge_bias.families import family_of


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
