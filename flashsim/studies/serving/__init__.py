"""A simulated drive for other programs: where it is reached, how long it is served, and what it then has to tell."""
