"""Designs by which an SSD that extends a memory pool is warm after a restart, one file each."""
