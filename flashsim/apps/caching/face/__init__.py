"""Names of ``import flashsim as fs``."""
