"""Formulas of each join's reads and writes: a file a join."""
