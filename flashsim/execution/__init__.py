"""Drivers that decide what an algorithm's requests mean: virtual time, a real file, or only a trace."""
