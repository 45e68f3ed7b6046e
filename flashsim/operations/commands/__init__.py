"""Operations that the command line alone has, one module each."""
