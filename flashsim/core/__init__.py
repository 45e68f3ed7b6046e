"""Basis of every room: units, errors, requests, members, random numbers, provenance, compiled kernels."""
