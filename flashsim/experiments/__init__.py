"""Runs of algorithms and traces on devices, and what they are held against: formulas, measurements, other devices."""
