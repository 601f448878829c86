"""`python -m commands.cli` is `tourney`."""

from commands.cli.app import main

main()
