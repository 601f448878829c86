"""Tables of ratings: Elo and Bradley-Terry."""
