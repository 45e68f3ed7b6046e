"""A small drive to take apart, and pictures of a drive or a join in steps."""
