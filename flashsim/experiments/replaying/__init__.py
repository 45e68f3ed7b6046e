"""Traces replayed on simulated and real devices, and reports of the devices."""
