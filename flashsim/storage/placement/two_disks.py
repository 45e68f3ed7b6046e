"""Packed, with base relations on the first device and temporary files on the second, as Haas et al. assume."""

from flashsim.storage.placement._device_maps import RELATIONS_AND_TEMPORARIES as DEVICE_MAP
from flashsim.storage.placement._runs import Runs as FileSystem

__all__ = ["DEVICE_MAP", "FileSystem"]
