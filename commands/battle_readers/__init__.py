"""Readers of battles that others held: what the rows of their files say, format by format."""
