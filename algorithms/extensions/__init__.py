"""Designs that extend a memory pool by an SSD, one file each."""
