"""Ratings from battles: Elo, Bradley-Terry, style control and standings."""
