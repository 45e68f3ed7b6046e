"""Pages one after another in the order in which they are written, as a log does."""

from flashsim.storage.placement.base import FileRuns as FileSystem

__all__ = ["FileSystem"]
