"""Expressions over columns of rows, with SQL's three truth values."""
