"""Drawings: pieces of SVG, what the report embeds, and figures that stand alone."""
