"""Elo: seasons of all battles in many orders, side by side."""
