"""The drive's event model in SimPy, to be read."""
