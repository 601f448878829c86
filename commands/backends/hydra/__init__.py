"""Decode a multi-head Hydra, as a product of experts."""
