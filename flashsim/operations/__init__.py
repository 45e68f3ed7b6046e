"""Each thing that one can run, declared once: its command, its function, and what it returns."""
