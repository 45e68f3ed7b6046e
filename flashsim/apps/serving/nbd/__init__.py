"""A simulated drive for real programs: the NBD protocol, content, and simulated time held against real time."""
