"""Recorded requests: their schema, recording, conversion and replay."""
