"""Page-fetch strategies: how the tuples of a join index are fetched; a member is a file."""
