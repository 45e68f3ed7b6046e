"""The fast model of a disk, compiled."""
