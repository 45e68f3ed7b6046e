"""Planners of page accesses: one file a member."""
