"""Implement the ports with real weights, SDKs and servers; wiring.py chooses among them."""
