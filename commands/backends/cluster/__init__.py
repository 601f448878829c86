"""Entrants' weights on the accelerators of a Ray cluster; the driver alone writes the ledger."""
