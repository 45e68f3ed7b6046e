"""Runs that results rest on: one join from names to cost, and independent runs made side by side and kept."""
