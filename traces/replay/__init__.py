"""Replay on real devices: a member is an engine that sends the requests of a trace to a file or block device and takes their times."""
