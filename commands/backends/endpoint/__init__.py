"""Judge and generate through any OpenAI-compatible server."""
