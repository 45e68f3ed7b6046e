"""Drives to take apart: one logical page, one flash operation or one event at a time."""
