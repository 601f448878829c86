"""Reliability: agreement between judges, and calibration of entrants' probabilities."""
