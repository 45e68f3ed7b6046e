"""The names of ``import flashsim as fs``, one module each: a module's name is the name, and what it defines under that name is the value.

Files whose names start with ``_`` are shared parts.
"""
