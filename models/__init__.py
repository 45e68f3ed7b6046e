"""Cost formulas and optimisers, independent of every simulator."""
