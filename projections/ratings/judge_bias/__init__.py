"""Biases of judges: for a slot, a style, or models like themselves; and how well they discern."""
