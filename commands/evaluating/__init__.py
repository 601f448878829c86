"""Evaluate entrants sample by sample: four kinds, the registry, and running them."""
