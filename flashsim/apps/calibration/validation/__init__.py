"""Validation of simulated devices against measured ones."""
