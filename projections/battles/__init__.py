"""Battles in columns, from a tournament or an import."""
