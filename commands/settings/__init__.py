"""Read tournament.toml and the plain files that it names."""
