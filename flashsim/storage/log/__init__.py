"""The log of a database: its records, what of a database survives a crash, and recovery from that."""
