"""What a trace says of a workload, in one pass in constant memory."""
