"""Find, check and digest entrants' files; generate the responses that are missing."""
