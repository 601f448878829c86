"""The files of a run, as pure functions of the events."""
