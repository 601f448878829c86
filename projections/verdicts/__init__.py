"""Judge queries, the parsers of replies, and the policies that make outcomes of verdicts."""
