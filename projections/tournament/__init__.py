"""One tournament's state, and what follows from it: matches, settlements, progress and spend."""
