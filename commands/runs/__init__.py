"""Register a tournament, run it to published files, and check beforehand that it can run."""
