"""What joins by sorting are made of: the tournament tree, and runs on disk."""
