"""What the mathematics of ratings raises on purpose."""

from ledger.errors import TourneyError


class NotABattle(TourneyError):
    """A battle says what no rating can use."""

    def __init__(self, number: int, why: str) -> None:
        super().__init__(f"battle {number}, counted from 0: {why}; correct it or leave it out")
        self.number, self.why = number, why


class CannotRate(TourneyError):
    """The battles cannot be rated by what was asked for."""

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(f"cannot rate these battles: {why}; {remedy}")
        self.why, self.remedy = why, remedy
