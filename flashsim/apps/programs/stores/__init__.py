"""Embedded stores whose files a power cut is tried on, a file a store."""
