"""What a drive's flash holds, without a clock: arrays, pools of blocks, collection, recovery; engine and specification share it."""
