"""Send requests to remote servers, as many and as fast as each takes, and decode what they say."""
