"""Views as tables: which columns, in which order, with which notes."""
