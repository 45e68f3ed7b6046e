"""What each join reads and writes, by formula: a file a join."""
