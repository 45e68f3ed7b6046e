"""Disk drives in DiskSim's parameter files: read, and told in the words of `flashsim.hdd.parameters`."""
