"""The readable model of a disk, in SimPy."""
