"""What joins by hashing are made of: the table in memory, and buckets on disk."""
