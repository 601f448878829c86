"""What we do: the command line, use cases, decisions, ports and their backends."""
