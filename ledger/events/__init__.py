"""The facts a ledger holds, by subject; registry.py names them all."""
