"""Garbage collection policies, one file each."""
