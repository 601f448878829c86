"""The rows of every result, each declared once: its fields, and how each is shown."""
