"""Crashes after every event of many small histories, and what recovery makes of each."""
