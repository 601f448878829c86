"""One tournament, folded: its state, matches, settlement, jury, progress and spend."""
