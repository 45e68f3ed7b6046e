"""Wear levelling policies, one file each."""
