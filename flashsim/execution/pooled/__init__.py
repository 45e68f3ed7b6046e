"""Clients whose transactions reference pages through a memory pool that an SSD may extend, in virtual time."""
