"""Replacement policies on traces of page references: who hits how often at which size, told with confidence."""
