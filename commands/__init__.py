"""What we do: every command, and what each needs of the world."""
