"""The files of a run, each a pure function of what the ledger holds up to a position."""
