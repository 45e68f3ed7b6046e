"""Parts of joins by hashing: the table in memory, and buckets on disk."""
