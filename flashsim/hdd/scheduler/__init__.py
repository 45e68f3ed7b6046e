"""Which of the commands that a drive holds it serves next."""
