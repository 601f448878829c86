"""The event types, by subject; registry.py lists them all."""
