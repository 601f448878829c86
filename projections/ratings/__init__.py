"""From battles to ratings: Elo, Bradley-Terry, style control, standings."""
