"""Partition methods: how a hash join reads a file and writes its buckets, a file a method."""
