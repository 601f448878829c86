"""Text that others wrote, made harmless for terminals, JSON and spreadsheets."""

import json

from projections.artifacts.escaping import guarded, is_hidden, shown


def shown_json(text: str) -> str:
    """Return the same JSON with invisible characters escaped."""
    return "".join(
        json.dumps(character)[1:-1] if is_hidden(character) else character for character in text
    )


def one_line(text: str) -> str:
    """Return escaped text on one line."""
    return " ".join(shown(text).split())


def csv_cell(text: str) -> str:
    """Return escaped text that no spreadsheet reads as a formula."""
    safe = shown(text)
    return safe if safe.startswith("'") else guarded(safe)
