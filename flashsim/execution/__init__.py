"""Requests of algorithms, and the drivers that serve them: in virtual time, on a real file, or only counted."""
