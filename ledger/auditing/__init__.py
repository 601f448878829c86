"""Auditing: is every event there, in order and unchanged?"""
