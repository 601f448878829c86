"""What a ledger came to: a tournament as it was read, its rating settings, results as rows."""
