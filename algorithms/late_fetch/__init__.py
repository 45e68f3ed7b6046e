"""Parts of joins that fetch rows afterwards: digests and keys that are read alone, the join index, and the fetch."""
