"""The report: one HTML page on a tournament, complete in itself."""
