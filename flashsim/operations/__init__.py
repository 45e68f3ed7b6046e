"""What people run, each thing declared once: `face` has the names of `fs`, `commands` what the command line has besides."""
