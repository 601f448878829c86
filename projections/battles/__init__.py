"""Battles as arrays: from a tournament, or imported; soft scores and their calibration."""
