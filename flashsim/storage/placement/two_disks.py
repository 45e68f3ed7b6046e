"""Packed, with base relations on the first device and temporary files on the second, as Haas et al. assume."""

from flashsim.storage.placement.base import RELATIONS_AND_TEMPORARIES as DEVICE_MAP
from flashsim.storage.placement.base import FileRuns as FileSystem

__all__ = ["DEVICE_MAP", "FileSystem"]
