"""Evaluations, folded: runs, samples, and metrics with clustered errors."""
