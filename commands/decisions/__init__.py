"""Turn commands into events, and record them."""
