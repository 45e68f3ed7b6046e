"""Formulas and optimisers: what an algorithm should cost, said without simulating anything."""
