"""Join algorithms: one file a member."""
