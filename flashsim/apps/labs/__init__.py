"""Labs for courses: what students write is tried on instances that are drawn from a seed, in a process of its own."""
