"""The page cache of an operating system: which pages of files are in memory, which of them are dirty, and what is read ahead.

Two lists of least recently used pages, as Linux has them: a page comes to the inactive one, and to the active one at its second access;
pages leave from the old end of the inactive list, which takes from the active one while it is the shorter.  What Linux adds is left out:
distances of refaults, page tables, control groups, and a separate list a node of memory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from math import isqrt

from flashsim.core import parameters
from flashsim.core.units import GIB, KIB, SECONDS

#: Bytes of a page.
PAGE = 4 * KIB
#: Pages of the largest request that a device takes at once; a read of more than a window may be so large.
_LARGEST = 320
#: A page: the number of its file, and its own number in the file.
CachePage = tuple[int, int]


class HostPageCache:
    """Pages in memory, where there is room for so many.

    Examples
    --------
    >>> cache = HostPageCache(2)
    >>> for number in (1, 2, 1, 1, 3):
    ...     cache.access((0, number))
    >>> [(0, number) in cache for number in (1, 2, 3)]
    [True, False, True]
    """

    def __init__(self, frames: int) -> None:
        self.frames = frames
        self._ratio = isqrt(10 * frames * PAGE // GIB) or 1
        self._inactive, self._active = OrderedDict[CachePage, bool](), OrderedDict[CachePage, None]()
        self._pages: dict[int, set[int]] = {}
        #: Dirty pages by file, the file first that has been dirty for longest.
        self.dirty: dict[int, set[int]] = {}
        self.dirty_pages = 0

    def __contains__(self, page: CachePage) -> bool:
        return page in self._inactive or page in self._active

    def access(self, page: CachePage) -> None:
        """A program reads or writes a page, which is in memory from then on."""
        if page in self._active:
            self._active.move_to_end(page)
            return
        self.add(page)
        if self._inactive[page]:
            del self._inactive[page]
            self._active[page] = None
        else:
            self._inactive[page] = True

    def add(self, page: CachePage) -> None:
        """Bring a page into memory without an access to it."""
        if page in self:
            return
        if len(self._inactive) + len(self._active) >= self.frames:
            self._evict()
        self._inactive[page] = False
        self._pages.setdefault(page[0], set()).add(page[1])

    def _evict(self) -> None:
        """Remove the oldest inactive page that is clean; dirty ones are left to be written first."""
        for _ in range(len(self._inactive) + len(self._active)):
            while self._active and len(self._inactive) * self._ratio < len(self._active):
                self._inactive[self._active.popitem(last=False)[0]] = False
            page, was_accessed = self._inactive.popitem(last=False)
            if page[1] not in self.dirty.get(page[0], ()):
                self._pages[page[0]].discard(page[1])
                return
            self._inactive[page] = was_accessed

    def soil(self, page: CachePage) -> None:
        """A page in memory differs from the device from now on."""
        pages = self.dirty.setdefault(page[0], set())
        self.dirty_pages += page[1] not in pages
        pages.add(page[1])

    def dirty_between(self, file: int, first: int, end: int) -> list[int]:
        """Dirty pages of a file from one on and before another, in no order."""
        pages = self.dirty.get(file, set())
        if end - first < len(pages):
            return [page for page in range(first, end) if page in pages]
        return [page for page in pages if first <= page < end]

    def clean(self, file: int, pages: Iterable[int]) -> None:
        dirty = self.dirty.get(file, set())
        gone = dirty.intersection(pages)
        dirty -= gone
        self.dirty_pages -= len(gone)
        if not dirty:
            self.dirty.pop(file, None)

    def drop(self, file: int, first: int = 0, last: int | None = None) -> None:
        """Forget pages of a file, dirty ones too."""
        gone = [page for page in self._pages.get(file, ()) if page >= first and (last is None or page <= last)]
        self.clean(file, gone)
        for page in gone:
            self._inactive.pop((file, page), None)
            self._active.pop((file, page), None)
        self._pages.get(file, set()).difference_update(gone)


@dataclass
class ReadAhead:
    """The window that is read ahead of one reader of a file, as Linux does it (``mm/readahead.c``).

    A window begins where reading is in order: at the begin of a file, or next to the last read.  It begins with two or four times what
    was asked for and doubles (from a small one, quadruples) up to the most; when the reader comes to the mark in it, the next window is
    read without anyone waiting for it.

    Examples
    --------
    >>> window = ReadAhead(32)
    >>> window.missing(0, 1), window.next_window(), window.next_window()
    ((0, 4), (4, 8), (12, 4))
    """

    #: Pages of a window at most; 0: nothing is read ahead.
    most: int
    begin: int = 0
    size: int = 0
    ahead: int = 0
    #: Windows end at multiples of so many pages, as a power of two: pages of memory become larger as reading goes on.
    order: int = 0
    previous: int = -2

    @property
    def mark(self) -> int:
        """The page at which the next window is read."""
        return self.begin + self.size - self.ahead if self.ahead else -1

    def missing(self, page: int, asked: int, cached_before: int = 0) -> tuple[int, int]:
        """First page and number of pages to read where one is missing, of so many that are asked for.

        `cached_before` is pages in memory right before this one.
        """
        if not self.most:
            return page, asked
        most, self.order = max(self.most, min(asked, _LARGEST)), 0
        if page == 0 or asked > most or page - self.previous in (0, 1):
            self.begin, self.size = page, _first_size(asked, most)
            self.ahead = self.size - asked if self.size > asked else self.size // 2
            return page, self.size
        if cached_before > asked:
            size = (2 if cached_before == page else 1) * cached_before + asked
            self.begin, self.size, self.ahead = page, min(size, most), 1
            return page, self.size
        return page, asked

    def next_window(self, asked: int = 1) -> tuple[int, int]:
        """First page and number of pages of the next window, as the reader comes to the mark and asks for so many more."""
        self.begin += self.size
        size = _next_size(self.size, max(self.most, min(asked, _LARGEST)))
        self.order += 2
        end = (self.begin + size) >> self.order << self.order
        self.size = self.ahead = end - self.begin if end > self.begin else size
        self.order = min(self.order, self.size.bit_length() - 1)
        return self.begin, self.size


def _first_size(asked: int, most: int) -> int:
    size = 1 << (asked - 1).bit_length()
    return 4 * size if size <= most // 32 else 2 * size if size <= most // 4 else most


def _next_size(size: int, most: int) -> int:
    return 4 * size if size < most // 16 else 2 * size if size <= most // 2 else most


@dataclass(frozen=True, kw_only=True)
class HostSettings:
    """An operating system's memory and file system, as ``calls:memory=1GiB,limit=0.2`` has them."""

    memory: int = parameters.size("of the page cache; 0B: every call goes to the device", least=0, default=GIB)
    read_ahead: int = parameters.size("read ahead of a reader at most; 0B: nothing", least=0, default=128 * KIB)
    background: float = parameters.number("share of memory above which dirty pages are written", 0.0, 1.0, default=0.1)
    limit: float = parameters.number("share of memory above which a writer waits", 0.0, 1.0, default=0.2)
    expiry: int = parameters.duration("after which a dirty page is written", default=30 * SECONDS)
    wakeup: int = parameters.duration("between two looks for pages that have expired", least=1, default=5 * SECONDS)
    commit: int = parameters.duration("after which the journal commits a change", least=1, default=5 * SECONDS)
    journal: bool = parameters.switch("whether the file system writes a journal, and other metadata", default=True)
    warm: bool = parameters.switch("whether files were in memory before the program began", default=False)
    largest: int = parameters.size("of a request of the page cache at most", least=PAGE, default=1280 * KIB)
