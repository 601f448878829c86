"""The command line: one module a top-level command."""
