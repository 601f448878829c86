"""Lay out the files of a tournament: the demo's, or those of a new one."""
