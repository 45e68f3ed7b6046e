"""The contracts, a module a family that has its name."""
