"""Model families by name, for self-preference: a judge may prefer its own family."""

import re
from collections.abc import Mapping
from typing import Final

_FAMILIES: Final[Mapping[str, str]] = {
    "Claude": r"claude",
    "GPT": r"(?:chat)?gpt(?!q(?![a-z])|-?neo|-?j(?![a-z]))|o[134](?![a-z0-9])",
    "Gemini": r"gemini|gemma",
    "DeepSeek": r"deepseek",
    "Llama": r"(?:code|tiny)?llama|vicuna",
    "Qwen": r"qwen|qwq",
    "OLMo": r"olmo",
    "Mistral": r"mi[sx]tral|ministral|magistral|codestral",
    "Command": r"command(?:-?[ar](?![a-z])|-light|-nightly|$)",
    "Phi": r"phi(?![a-z])",
    "Grok": r"grok",
    "Nemotron": r"nemotron",
    "Yi": r"yi(?![a-z])",
    "GLM": r"(?:chat)?glm(?![a-z])",
    "Kimi": r"kimi",
}
_PATTERNS: Final = {
    family: re.compile(rf"(?<![a-z0-9])(?:{pattern})", re.IGNORECASE)
    for family, pattern in _FAMILIES.items()
}


def family_of(*names: str) -> str | None:
    """Return the family of a model, by the first of its names that tells; None if none does.

    Of a path the last part counts: who keeps the weights says nothing of them. Of a name with parts
    of two families, as of a distilled model, it is the last: those weights were trained further.
    """
    for name in names:
        model = name.rstrip("/").rpartition("/")[2]
        found = [
            (match.start(), family)
            for family, pattern in _PATTERNS.items()
            for match in pattern.finditer(model)
        ]
        if found:
            return max(found)[1]
    return None
