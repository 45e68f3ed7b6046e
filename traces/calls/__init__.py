"""System calls of programs on files: their schema, and what reads them."""
