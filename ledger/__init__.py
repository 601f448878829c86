"""What happened: events, the append-only store and its hash chain."""
