"""Known states of a drive before a measurement."""
