"""What a disk is and remembers: its sectors, its arm, and the arrays of its state."""
