"""Run a tournament from registration to published files; replay and verify it."""
