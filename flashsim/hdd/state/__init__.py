"""State of a disk: its sectors, its arm, and the arrays of its state."""
