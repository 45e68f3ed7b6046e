"""Tools over devices, algorithms and traces: calibration, benchmarks, replaying, validation, caching, serving."""
