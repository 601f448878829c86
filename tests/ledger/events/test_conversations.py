"""Turns as one text that tells them apart, and which of them an entrant is asked."""

from hypothesis import given
from hypothesis import strategies as st

from ledger.events.conversations import Messages, asked_so_far, n_answers, transcript, turns_in

TALKS = st.lists(
    st.tuples(
        st.sampled_from(["system", "user", "assistant"]),
        st.text(alphabet="`\n:u ", max_size=8) | st.sampled_from(["a\n```\n\nuser:\n```\nb"]),
    ),
    max_size=4,
).map(tuple)


@given(TALKS, TALKS)
def test_different_conversations_have_different_transcripts(one: Messages, other: Messages) -> None:
    """Nothing that is said can pose as another turn, fences and roles included."""
    assert (transcript(one) == transcript(other)) == (one == other)


@given(TALKS)
def test_a_transcript_can_be_read_again(talk: Messages) -> None:
    """As answers that were written as a table are."""
    assert turns_in(transcript(talk)) == talk


def test_another_text_has_no_turns() -> None:
    """However much it looks like a transcript."""
    assert turns_in("") == turns_in("Why?") == turns_in("user:\n````\nWhy?\n````") == ()
    assert turns_in("Say so:\n```\nprint(0)\n```") == ()


def test_a_transcript_names_who_says_what() -> None:
    """A fence has more backticks than what it holds."""
    said = transcript((("system", "Be brief."), ("user", "```py\n1\n```")))

    assert said == "system:\n```\nBe brief.\n```\n\nuser:\n````\n```py\n1\n```\n````"


def test_a_conversation_is_asked_up_to_the_question_without_an_answer() -> None:
    """Given answers stay; between two turns of the user the entrant's own stands."""
    talk: Messages = (("user", "1"), ("assistant", "one"), ("user", "2"), ("user", "3"))

    assert n_answers(talk) == 2
    assert asked_so_far(talk, ()) == talk[:3]
    assert asked_so_far(talk, ("two",)) == (*talk[:3], ("assistant", "two"), talk[3])


def test_a_conversation_that_ends_with_one_question_is_asked_whole() -> None:
    """There is one answer to give."""
    talk: Messages = (("system", "Be brief."), ("user", "1"))

    assert n_answers(talk) == 1
    assert asked_so_far(talk, ()) == talk
