"""Pages one after another in the order in which they are written, as a log does."""

from flashsim.storage.placement._device_maps import ONE_DEVICE as DEVICE_MAP
from flashsim.storage.placement._runs import Runs as FileSystem

__all__ = ["DEVICE_MAP", "FileSystem"]
