"""Pools of frames that hold some of the pages of larger storage; which of them is a replacement policy's choice."""
