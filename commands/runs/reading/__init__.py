"""What the library returns: views of a ledger, their numbers, and the rows they come in."""
