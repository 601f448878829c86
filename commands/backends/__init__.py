"""Real implementations of the ports; the only place that imports torch and other heavy packages."""
