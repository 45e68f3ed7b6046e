"""Workload generators, one file each: runs that vary one parameter of how a device is accessed."""
