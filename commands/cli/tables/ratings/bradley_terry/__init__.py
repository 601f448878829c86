"""Bradley-Terry ratings, and differences of all pairs, as tables."""
