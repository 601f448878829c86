"""Read a ledger: what names and options mean, a judged tournament, and the rows of its results."""
