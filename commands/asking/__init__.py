"""Ask a server several requests at a time: threads, pace, retries, and what ends a run."""
