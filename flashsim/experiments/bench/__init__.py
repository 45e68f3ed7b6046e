"""Measuring devices: nominal figures below the block layer, and the micro-benchmarks of uFLIP."""
