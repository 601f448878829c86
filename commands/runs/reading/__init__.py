"""What the library and ratings read of a ledger, and the rows that they return."""
