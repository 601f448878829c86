"""Somebody votes in the browser: without names, and from these pages only."""

import re
from http import HTTPStatus

import pytest

from commands.importing.votes import BallotBox, open_ballot_box
from commands.viewer.annotator import answer_annotator
from commands.viewer.server import Access, PageReply, PageRequest
from ledger.events.imports import battles_stream
from ledger.identity import Dimension
from ledger.store import Ledger
from tests.support.builders.events import known
from tests.support.builders.worlds import cup, history

ACCESS = Access("secret", is_read_only=False)
HOST = "127.0.0.1:80"
ASKED = PageRequest("/", host=HOST, cookie="tourney-80=secret")


@pytest.fixture
def box(ledger: Ledger) -> BallotBox:
    """Give the ballots of a cup."""
    tournament = known(*history(cup(), "a", "b"))
    return open_ballot_box(
        ledger, tournament, "votes", "ann", dimension=Dimension("factuality"), design="random"
    )


def get(box: BallotBox, path: str = "/") -> PageReply:
    """Ask for a page."""
    return answer_annotator(ASKED._replace(path=path), ACCESS, box)


def fields(source: bytes) -> dict[str, str]:
    """Return the hidden fields of a page's form."""
    hidden = r'<input type="hidden" name="(\w+)" value="([^"]*)">'
    return dict(re.findall(hidden, source.decode()))


def send(box: BallotBox, form: dict[str, str], origin: str = f"http://{HOST}") -> PageReply:
    """Send a form."""
    sent = ASKED._replace(path="/vote", method="POST", origin=origin, form=form)
    return answer_annotator(sent, ACCESS, box)


def test_a_ballot_has_both_texts_and_no_name(box: BallotBox) -> None:
    """Whoever knows who wrote it judges the writer."""
    ballot = box.ballots[0]

    body = get(box).body.decode()

    shown = re.sub(r"<(style|script)>.*?</\1>", "", body, flags=re.DOTALL)
    assert ballot.pairing.prompt.text in shown
    assert shown.count('class="card side"') == 2
    assert "aspirin" in shown
    assert "Judge factuality." in shown
    assert "0 of 6 voted" in shown
    for text in (ballot.a.text, ballot.b.text):
        assert text.split()[0] in shown
    marked = re.sub(r"</?mark>", "", shown).replace(ballot.a.text, "").replace(ballot.b.text, "")
    assert not [name for name in ("zoe", "amy", "kim") if name in marked]


@pytest.mark.parametrize(
    ("choice", "said"),
    [("a", "A is better"), ("b", "B is better"), ("tie", "a tie"), ("skip", "skipped")],
)
def test_a_vote_leads_to_the_next_ballot_and_can_be_seen_again(
    box: BallotBox, choice: str, said: str
) -> None:
    """One goes back to correct a slip."""
    form = fields(get(box).body)

    reply = send(box, form | {"choice": choice})

    assert reply.status is HTTPStatus.SEE_OTHER
    assert dict(reply.headers)["Location"] == "/"
    following, back = get(box).body.decode(), get(box, "/ballot/1").body.decode()
    assert "1 of 6 voted" in following
    assert 'href="/ballot/1"' in following
    assert f"Your vote: <b>{said}</b>" in back
    assert fields(back.encode())["n_before"] == "1"


def test_a_double_click_votes_once(box: BallotBox) -> None:
    """The second is shown what counts."""
    form = fields(get(box).body)
    send(box, form | {"choice": "a"})

    reply = send(box, form | {"choice": "b"})

    assert dict(reply.headers)["Location"] == "/ballot/1"
    assert "Your vote: <b>A is better</b>" in get(box, "/ballot/1").body.decode()


def test_a_vote_that_cannot_be_recorded_is_said_to_be_none(box: BallotBox) -> None:
    """Where the page only breaks off, people believe that they have voted."""
    other = open_ballot_box(
        box.ledger,
        known(*history(cup(), "a", "inconsistent")),
        "votes",
        "bob",
        dimension=Dimension("factuality"),
        design="disagreement",
    )
    form = fields(get(box).body)
    other.cast(0, "a", n_before=0)

    reply = send(box, form | {"choice": "a"})

    assert reply.status is HTTPStatus.INTERNAL_SERVER_ERROR
    assert reply.body.startswith(b"This vote is not recorded: set 'votes' was drawn otherwise")


def test_a_form_of_another_site_votes_on_nothing(box: BallotBox) -> None:
    """It can be sent by any page that is open in the same browser."""
    form = fields(get(box).body) | {"choice": "a"}

    assert send(box, form, origin="https://evil.example").status is HTTPStatus.FORBIDDEN
    assert box.n_done == 0
    assert not [*box.ledger.read(stream=battles_stream("votes"))]


@pytest.mark.parametrize(
    "wrong",
    [{"choice": "c"}, {"ballot": "7"}, {"ballot": "0"}, {"ballot": "-1"}, {"n_before": "x"}]
    + [{name: "9" * 5_000} for name in ("ballot", "n_before")],
)
def test_what_is_no_vote_is_refused(box: BallotBox, wrong: dict[str, str]) -> None:
    """Nothing is guessed."""
    form = fields(get(box).body) | {"choice": "a"} | wrong

    assert send(box, form).status is HTTPStatus.BAD_REQUEST
    assert box.n_done == 0


@pytest.mark.parametrize("number", ["0", "7", "x", "", "-1", "9" * 5_000])
def test_a_ballot_that_is_none_has_no_page(box: BallotBox, number: str) -> None:
    """Whatever number an address names."""
    assert get(box, f"/ballot/{number}").status is HTTPStatus.NOT_FOUND


def test_at_the_end_it_says_what_the_votes_are_for(box: BallotBox) -> None:
    """And one can still go back."""
    for number in range(6):
        box.cast(number, "a", n_before=0)

    body = get(box).body.decode()

    assert "tourney project bt --truth votes" in body
    assert 'href="/ballot/6"' in body
    for path in ("/ballot/7", "/ballot/x", "/battles", "/ballot/"):
        assert get(box, path).status is HTTPStatus.NOT_FOUND
    assert get(box, "/favicon.ico").status is HTTPStatus.NO_CONTENT
