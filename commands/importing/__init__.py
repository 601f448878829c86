"""Take in what others recorded: battles, ratings, responses, another ledger."""
