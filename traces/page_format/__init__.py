"""Formats of page traces: files that say which page is asked for, one reference after the other."""
