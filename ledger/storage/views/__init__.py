"""The views of a ledger: its facts as tables, for SQL and for who opens the file with its tools."""
