"""A flash drive that extends a memory pool: which pages stand in which of its frames, without a clock."""
