"""Ask judges, directly or in batches, and reconcile the pairs."""
