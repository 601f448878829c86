"""Know what requests cost, ask for consent, and keep the cap."""
