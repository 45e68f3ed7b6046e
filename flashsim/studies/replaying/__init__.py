"""Traces replayed on simulated and real devices, and what the devices showed."""
