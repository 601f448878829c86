"""One value has one spelling, and so one name."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.identity import Json, canonical_json, digest_of_bytes


def values() -> st.SearchStrategy[Json]:
    """Return any JSON value."""
    finite = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.text()
        | st.floats(allow_nan=False, allow_infinity=False)
    )
    return st.recursive(
        finite, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
    )


def test_canonical_json_has_one_spelling() -> None:
    """Digests are compared for ever: keys sorted, no spaces, UTF-8 as it is."""
    value: Json = {"b": [1, 2.5, True, None], "a": {"z": "ü \u2028 \n", "Z": ()}}

    spelled = canonical_json(value)

    assert spelled == '{"a":{"Z":[],"z":"ü \u2028 \\n"},"b":[1,2.5,true,null]}'.encode()


@given(value=values())
def test_canonical_json_says_the_value_whole(value: Json) -> None:
    """Two values must not share a spelling, or a changed prompt would go unnoticed."""
    spelled = canonical_json(value)

    assert json.loads(spelled) == value


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_cannot_say_are_refused(number: float) -> None:
    """A NaN that other programs cannot read must not get into a digest."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"rating": [number]})


def test_text_that_is_no_unicode_is_refused() -> None:
    """Half a surrogate pair has no UTF-8: no file could hold what was hashed."""
    with pytest.raises(ValueError, match="surrogates not allowed"):
        canonical_json("\ud800")


def test_a_digest_is_sha_256_in_lowercase_hexadecimal() -> None:
    """Users compare a file's digest with what `sha256sum` prints."""
    digest = digest_of_bytes(b"abc")

    assert digest == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
