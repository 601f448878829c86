"""Judge through Anthropic's API, directly or in batches."""
