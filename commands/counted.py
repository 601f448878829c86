"""Counts in words."""


def counted(n: int, noun: str) -> str:
    """Return "1 run", "2 runs"."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
