"""Keys are taken out of what servers answer, and ordinary words are left."""

import pytest

from commands.errors import NoCredentials
from commands.settings import api_keys
from commands.settings.api_keys import key_in, redacted, require_keys, without_keys

EXPORT = "and none is set; export UNSET=..."
OFFLINE = ', or judge offline: [judge] provider = "reference"'


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("Incorrect API key provided: sk-ab12****wxyz.", "Incorrect API key provided: [key]."),
        ("got 'Authorization: Bearer abc.def-123'", "got 'Authorization: Bearer [key]'"),
        ("Authorization=abcdef", "Authorization=[key]"),
        ('{"x-api-key": "abcdef"}', '{"x-api-key": "[key]"}'),
        ("GET /v1?key=abcdef&n=1", "GET /v1?key=[key]&n=1"),
        ("no https://me:pw@host/v1?key=a#b.", "no https://host/v1"),
        ("proxy http://me:p@w@host:1 fails", "proxy http://host:1 fails"),
        ("AIzaSyA0123456789012345678901", "[key]"),
        ("Unknown key: 'temperature'", "Unknown key: 'temperature'"),
        ("max_tokens=4096 is too many tokens", "max_tokens=4096 is too many tokens"),
        ("a Bearer token is missing; x-api-key, too", "a Bearer token is missing; x-api-key, too"),
        ("see https://host/errors", "see https://host/errors"),
    ],
)
def test_what_looks_like_a_key_is_not_told(message: str, told: str) -> None:
    """The words around it say which setting to correct."""
    assert redacted(message) == told


def test_a_key_is_known_once_it_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its value, wherever it comes back; in JSON, a quotation mark is written otherwise.

    One that begins with another is taken out whole. A placeholder, as servers of one's own often
    want, stands in many replies and is none.
    """
    monkeypatch.setattr(api_keys, "_remembered", set())
    monkeypatch.setenv("MY_SERVER", 'word"of-mine')
    monkeypatch.setenv("ANTHROPIC_API_KEY", "one-long-word")
    monkeypatch.setenv("HF_TOKEN", "one-long-word-and-more")
    monkeypatch.setenv("OPENAI_API_KEY", "EMPTY")
    before = without_keys('word"of-mine')

    key_in("MY_SERVER")

    assert before == 'word"of-mine'
    assert without_keys(r'word"of-mine, "word\"of-mine"') == '[key], "[key]"'
    assert without_keys("one-long-word-and-more") == "[key]"
    assert without_keys("The list is EMPTY.") == "The list is EMPTY."


@pytest.mark.parametrize(
    ("needed", "said"),
    [
        ({"judge 'a'": ("SET",), "judge 'b'": ("UNSET", "SET"), "judge 'c'": ()}, None),
        (
            {"judge 'a'": ("UNSET", "OTHER")},
            f"judge 'a' needs an API key, {EXPORT}{OFFLINE}",
        ),
        (
            {
                "judge 'a'": ("UNSET",),
                "[[entrants]] 'b'": ("OTHER",),
                "[[entrants]] 'c'": ("OTHER",),
            },
            f"judge 'a', [[entrants]] 'b', [[entrants]] 'c' need API keys, {EXPORT} OTHER=..."
            + OFFLINE,
        ),
        (
            {"[[entrants]] 'b'": ("UNSET",)},
            f"[[entrants]] 'b' needs an API key, {EXPORT}, or set base_url to another server",
        ),
    ],
)
def test_all_keys_that_are_missing_are_named_at_once(
    monkeypatch: pytest.MonkeyPatch, needed: dict[str, tuple[str, ...]], said: str | None
) -> None:
    """Whoever sets one key a run runs the command as often as there are makers."""
    monkeypatch.setenv("SET", "secret")
    for name in ("UNSET", "OTHER"):
        monkeypatch.delenv(name, raising=False)

    if said is None:
        require_keys(needed)
        return
    with pytest.raises(NoCredentials) as refused:
        require_keys(needed)

    assert str(refused.value) == said
