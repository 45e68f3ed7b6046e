"""Systems of a memory pool and its SSD extension: setup, devices, run."""
