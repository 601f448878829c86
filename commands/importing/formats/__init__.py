"""Read foreign battle files: formats by who writes them, and the catalogue."""
