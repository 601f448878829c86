"""Drawings: SVG parts, drawings inside the report, and figures in files of their own."""
