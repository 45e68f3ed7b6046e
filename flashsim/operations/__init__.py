"""Operations that people run, each declared once: `face` has the names of `fs`, `commands` further ones of the command line."""
