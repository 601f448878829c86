"""What happened: event types, the append-only store, its hash chain, audit and exchange."""
