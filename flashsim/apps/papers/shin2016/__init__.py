"""Shin, Roh, Jung and Park, "Optimizing Hash Partitioning for Solid State Drives" (SAC 2016)."""
