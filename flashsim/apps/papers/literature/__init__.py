"""Reproduced papers: a folder each, and the contract that they share."""
