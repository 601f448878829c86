"""Elo: seasons of all battles in some order, many orders side by side.

Each lane plays its own order, and each K its own ratings. All operations are exactly rounded ones,
so that every processor finds the same bits.
"""
