"""Read foreign battle files: one module a format, and the catalogue."""
