"""A device preset as the cost models see it, and their formulas beside what a simulation measured."""
