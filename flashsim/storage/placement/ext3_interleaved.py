"""As ext3, with reservation windows: files that grow at the same time take turns in the order of addresses, window by window.

A file that is written takes a window, the next free run of blocks that is reserved for it, and fills it before it takes another.  The first
window has 8 blocks, or as many as the write needs; each later one is twice as long, up to the 1,024 blocks that one indirect block maps,
which lies before them.  (The kernel's limit of 1,027 blocks counts indirect blocks; here a window ends where its indirect block does.)
The rest of a window stays its file's: other files go on behind it, and the file comes back to it.

A base relation, which is loaded at once, reserves nothing: a file gives up its window when it is closed.

Source: ``fs/ext3/balloc.c`` of Linux 2.6.18, the kernel of Red Hat Enterprise 5 (``alloc_new_reservation`` and
``find_next_reservable_window``), which reserves unless a mount option says otherwise; M. Cao, T. Y. Ts'o, B. Pulavarty, S. Bhattacharya,
A. Dilger, A. Tomas, "State of the Art: Where we are with the Ext3 filesystem", Ottawa Linux Symposium 2005.
"""

from flashsim.storage.heap_file import File
from flashsim.storage.placement import ext3
from flashsim.storage.placement.base import Room

#: Blocks of a file's first window, at least.
_FIRST_WINDOW = 8


class FileSystem(ext3.FileSystem):
    """Reserves a window of blocks for each temporary file that grows."""

    def __init__(self, room: Room) -> None:
        super().__init__(room)
        self._first_window = _FIRST_WINDOW * ext3.BLOCK * room.scale
        self._windows: dict[File, int] = {}  # pages of a file's last window

    def reserved_pages(self, file: File, pages: int) -> int:
        if not file.temporary:
            return pages
        first, last = max(1, round(self._first_window / file.page_size)), self._windows.get(file, 0)
        self._windows[file] = min(ext3.MAPPED // file.page_size, max(first, 2 * last, pages))
        return self._windows[file]

    def drop(self, file: File) -> list[tuple[int, int]]:
        self._windows.pop(file, None)
        return super().drop(file)
