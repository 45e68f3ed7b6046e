"""Replacement policies, one file each: which page leaves a pool of frames when another must enter."""
