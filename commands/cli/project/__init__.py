"""The read-only views: `tourney project ...`."""
