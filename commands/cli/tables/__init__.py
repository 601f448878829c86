"""Views as tables, and tables as text."""
