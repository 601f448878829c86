"""Counts in words."""


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """Return "1 run", "2 runs", "3 queries"."""
    return f"{n} {noun}" if n == 1 else f"{n} {plural or f'{noun}s'}"
