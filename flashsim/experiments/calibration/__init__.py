"""Calibration: a device is measured by micro-benchmarks, and a preset is fitted that shows the same figures in the simulator."""
