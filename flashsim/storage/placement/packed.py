"""Pages one after another in the order in which they are written, as a log does."""

from flashsim.storage.placement.base import ONE_DEVICE as DEVICE_MAP
from flashsim.storage.placement.base import FileRuns as FileSystem

__all__ = ["DEVICE_MAP", "FileSystem"]
