"""Simulated devices held against measured ones."""
