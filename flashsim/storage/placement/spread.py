"""Every temporary file in a run of its expected length, which is reserved when its first page is written."""

from flashsim.storage.heap_file import File
from flashsim.storage.placement.base import FileRuns

#: A reserved run is so much longer than the file is expected to be.
_MARGIN = 1.1


class FileSystem(FileRuns):
    """Reserves the expected length of a file at once."""

    def reserved_pages(self, file: File, pages: int) -> int:
        return max(pages, int(file.expected_pages * _MARGIN))
