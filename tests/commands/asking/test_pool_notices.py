"""A hung server is named before its requests time out."""

from datetime import timedelta

from commands.asking.pool import WaitingNotices
from tests.support.builders.clock import Clock


class Watched:
    """Notices by a clock that the test moves on, and what they said."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.clock = Clock()
        self.notices = WaitingNotices(
            "judge 'm' at http://here/v1",
            timeout_s=600.0,
            now=self.clock.now,
            tell=self.told.append,
        )

    def after(self, seconds: float) -> list[str]:
        """Return what was told when so many seconds more have passed."""
        self.clock.sleep(seconds)
        self.notices.tell_if_due()
        return self.told

    def time_in(self, seconds: float) -> str:
        """Return the time of day in so many seconds, as messages show it."""
        return f"{(self.clock.now() + timedelta(seconds=seconds)).astimezone():%H:%M:%S}"


def test_after_a_minute_a_line_says_who_how_many_since_when_and_until_when() -> None:
    """An hour of nothing looks like a hang of tourney."""
    watched = Watched()
    since, until = watched.time_in(0), watched.time_in(600)
    watched.notices.sent(1)
    watched.clock.sleep(10)
    watched.notices.sent(2)

    assert watched.after(49) == []
    (line,) = watched.after(1)
    assert line == (
        f"waiting for judge 'm' at http://here/v1 since {since}: 2 requests without an answer;"
        f" the oldest times out at {until}, after 600 s"
    )


def test_the_line_comes_again_ever_more_rarely() -> None:
    """A judge may think for ten minutes; a line each minute would bury the rest."""
    watched = Watched()
    watched.notices.sent(1)

    told = [len(watched.after(60)) for _ in range(10)]

    assert told == [1, 2, 2, 3, 3, 3, 3, 4, 4, 4]


def test_any_answer_ends_the_silence() -> None:
    """One slow request among many is no hang."""
    watched = Watched()
    watched.notices.sent(1)
    watched.notices.sent(2)
    assert watched.after(59) == []

    watched.notices.ended(2)

    assert watched.notices.due_s == 60
    assert watched.after(59) == []
    assert "1 request without an answer" in watched.after(1)[0]


def test_where_nothing_is_under_way_nobody_is_waited_for() -> None:
    """A pause between requests, for a busy server, tells of itself."""
    watched = Watched()
    watched.notices.sent(1)
    watched.notices.ended(1)

    assert watched.after(3_600) == []

    watched.notices.sent(2)
    assert watched.notices.due_s == 60
