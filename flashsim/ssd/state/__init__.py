"""Content of a drive's flash, without a clock: arrays, pools of blocks, collection, recovery; engine and specification share it."""
