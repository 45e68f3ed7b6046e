"""Names of ``import flashsim as fs``, one module each."""
