"""Who is let in, and with what."""

from http import HTTPStatus

import pytest

from commands.viewer.server import Access, PageReply, PageRequest

HOST = "127.0.0.1:8000"
ACCESS = Access("secret")
COOKIE = "other=1; tourney-8000=secret"
INSIDE = PageRequest("/", host=HOST, cookie=COOKIE)


def status(request: PageRequest, access: Access = ACCESS) -> HTTPStatus | None:
    """Return with what a request is refused; None: it is let in."""
    refusal = access.refusal(request)
    return refusal.status if refusal else None


def header(reply: PageReply | None, name: str) -> str:
    """Return a header of a reply."""
    return dict(reply.headers)[name] if reply else ""


def test_the_token_is_exchanged_for_a_cookie_that_no_script_reads() -> None:
    """The address with the token is left at once, so it is in no history and on no screen."""
    reply = ACCESS.refusal(PageRequest("/", {"token": "secret"}, host=HOST))

    assert header(reply, "Set-Cookie") == ("tourney-8000=secret; Path=/; HttpOnly; SameSite=Strict")
    assert reply
    assert b'content="0;url=/"' in reply.body
    assert status(INSIDE) is None


@pytest.mark.parametrize(
    "request_",
    [
        PageRequest("/", host=HOST),
        PageRequest("/", {"token": "wrong"}, host=HOST),
        PageRequest("/", {"token": ""}, host=HOST, cookie=COOKIE),
        PageRequest("/battles", {"token": "secret"}, host=HOST),
        INSIDE._replace(cookie="tourney-8000=wrong"),
        INSIDE._replace(cookie="tourney-8001=secret"),
        INSIDE._replace(cookie='tourney-8000="; ;=\x00'),
        INSIDE._replace(cookie="tourney-8000=sécret"),
    ],
)
def test_whoever_does_not_know_the_token_sees_nothing(request_: PageRequest) -> None:
    """Other users and programs of this machine can reach the port, too."""
    assert status(request_) is HTTPStatus.FORBIDDEN


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example:8000", "", "[::1]:8000"]
)
def test_a_foreign_name_for_this_machine_is_refused(host: str) -> None:
    """A site whose name is pointed at 127.0.0.1 would otherwise read the pages."""
    asked = PageRequest("/", {"token": "secret"}, host=host, cookie=COOKIE)

    assert status(asked) is HTTPStatus.MISDIRECTED_REQUEST


def test_a_tunnel_may_have_another_port() -> None:
    """Whoever works on a remote machine forwards a port of their own."""
    tunnel = PageRequest("/", host="localhost:9000", cookie="tourney-9000=secret")

    assert status(tunnel) is None


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_pages_that_are_only_read_take_nothing(method: str) -> None:
    """What can change nothing need not be guarded further."""
    reply = ACCESS.refusal(INSIDE._replace(method=method))

    assert reply
    assert reply.status is HTTPStatus.METHOD_NOT_ALLOWED
    assert header(reply, "Allow") == "GET, HEAD"


WRITING = Access("secret", is_read_only=False)
FORM = INSIDE._replace(method="POST", form={"form_token": WRITING.form_token})


@pytest.mark.parametrize(
    ("request_", "is_taken"),
    [
        (FORM, True),
        (FORM._replace(origin=f"http://{HOST}", site="same-origin"), True),
        (FORM._replace(form={}), False),
        (FORM._replace(form={"form_token": "secret"}), False),
        (FORM._replace(origin="http://evil.example"), False),
        (FORM._replace(origin="null"), False),
        (FORM._replace(site="cross-site"), False),
        (FORM._replace(site="same-site"), False),
        (FORM._replace(cookie=""), False),
    ],
)
def test_a_form_is_taken_from_our_own_pages_only(request_: PageRequest, *, is_taken: bool) -> None:
    """Another site can make a browser send a form, but it has neither the secret nor the origin."""
    assert status(request_, WRITING) is (None if is_taken else HTTPStatus.FORBIDDEN)


def test_a_request_is_read_from_what_was_sent() -> None:
    """Repeated, empty and foreign fields are no fault."""
    headers = {"Host": HOST, "Cookie": COOKIE, "Origin": "null", "Sec-Fetch-Site": "none"}

    read = PageRequest.of("/battles?text=%3Cb%3E&page=&text=two", headers, "GET", "vote=a&n=1")

    assert read == PageRequest(
        "/battles",
        {"text": "two", "page": ""},
        "GET",
        HOST,
        COOKIE,
        "null",
        "none",
        {"vote": "a", "n": "1"},
    )
    assert PageRequest.of("/?" + "a=1&" * 50, {}, "GET", "").query == {}


@pytest.mark.parametrize("target", ["http://[x/battles", "//[", "*", "?page=1", "[::1"])
def test_a_target_that_is_no_address_is_a_path_that_leads_nowhere(target: str) -> None:
    """A parser of whole addresses fails on some, with a traceback on the terminal."""
    assert PageRequest.of(target, {}, "GET", "").path == target.partition("?")[0]
