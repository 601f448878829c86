"""Pages in the browser: a tournament as it is played."""
