"""The subcommands of ``flashsim``, one module each."""
