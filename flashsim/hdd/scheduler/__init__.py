"""Schedulers: the choice of the command that a drive serves next, of those that it holds."""
