"""Placements: on which device a file lies, and how the file system there gives it room."""

from flashsim.storage.placement.base import PLACEMENTS, DeviceMap, FileRuns, Room

__all__ = ["PLACEMENTS", "DeviceMap", "FileRuns", "Room"]
