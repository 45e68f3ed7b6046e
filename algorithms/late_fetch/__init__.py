"""What joins that fetch rows afterwards are made of: digests and keys that are read alone, the join index, and the fetch."""
