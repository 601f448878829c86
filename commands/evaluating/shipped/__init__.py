"""The evaluations that ship with tourney."""
