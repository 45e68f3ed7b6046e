"""Programs inside a flash drive: what a session runs, the drive's cores and memory, and the commands OPEN, GET and CLOSE."""
