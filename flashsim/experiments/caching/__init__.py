"""Replacement policies on traces of page references: hit ratios by policy and size, with confidence."""
