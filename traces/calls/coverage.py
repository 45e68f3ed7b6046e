"""Bytes that recorded writes make dirty, counted as the kernel counts them in ``write_bytes`` of ``/proc/PID/io``.

A page counts each time that it becomes dirty: when it is written first, and again once it has been written back, by a sync or since it
has been dirty for long.  Writes past the page cache count by their bytes.

Some file systems keep the page cache in folios of several pages, and a written page makes its whole folio dirty (ext4 since Linux 6.16).
A write to pages that are not in the cache makes folios of as many pages as the write still has, rounded down to a power of two and to
their alignment (Linux 6.18, ``__filemap_get_folio``); a store to mapped memory makes folios of one page.
"""

from collections.abc import Callable, Container

import pyarrow as pa

from flashsim.core.units import SECONDS
from traces.calls import schema
from traces.calls.page_cache import PAGE

#: Time after which Linux writes a dirty page back, ns.
_EXPIRY = 30 * SECONDS
_COLUMNS = ("time", "call", "file", "path", "offset", "length", "result", "flags")


class _Folios:
    """Folios of one file, by first page and number of pages."""

    def __init__(self, large: bool, mapped: bool = False) -> None:
        self._large, self._mapped = large, mapped
        self._by_page: dict[int, tuple[int, int]] = {}
        self.dirty: dict[int, int] = {}

    def write(self, time: int, offset: int, size: int) -> int:
        """Write bytes, and return how many bytes of folios become dirty."""
        page, end, pages = offset // PAGE, (offset + size - 1) // PAGE + 1, 0
        while page < end:
            first, count = self._folio(page, (offset + size) // PAGE - page) if self._large else (page, 1)
            if time - self.dirty.get(first, -_EXPIRY) >= _EXPIRY:
                self.dirty[first], pages = time, pages + count
            page = first + count
        return pages * PAGE

    def sync(self, offset: int = 0, size: int = 0) -> None:
        """Write back a range, of size 0 all."""
        if not size:
            self.dirty.clear()
        for page in range(offset // PAGE, -(-(offset + size) // PAGE)):
            self.dirty.pop(page, None)

    def _folio(self, page: int, pages: int) -> tuple[int, int]:
        """The folio of a page, which a write of whole `pages` makes if there is none."""
        if page not in self._by_page:
            count = 1 if pages < 1 or (self._mapped and self._by_page) else 1 << (pages.bit_length() - 1)
            while page % count or any(page + each in self._by_page for each in range(count)):
                count //= 2
            self._by_page |= dict.fromkeys(range(page, page + count), (page, count))
        return self._by_page[page]


def dirtied_bytes(table: pa.Table, counts: Callable[[str], bool] = lambda path: True, mapped: Container[str] = ()) -> tuple[int, int]:
    """Bytes that the writes of recorded calls (`schema.SCHEMA`) make dirty, by pages and by folios of several pages.

    Parameters
    ----------
    counts
        Whether the kernel counts what is written to a file, by the file's path.
    mapped
        Paths of files that are written through memory, of which all writes but the first count as stores.
    """
    of_files = table.filter(pa.compute.and_(pa.compute.equal(table["kind"], "file"), pa.compute.is_null(table["error"])))
    caches, totals, is_counted = dict[int, tuple[_Folios, _Folios]](), [0, 0], dict[str, bool]()
    for time, call, file, path, offset, length, result, flags in zip(*(of_files[name].to_pylist() for name in _COLUMNS), strict=True):
        if call in ("sync", "syncfs"):
            for cache in (each for pair in caches.values() for each in pair):
                cache.dirty.clear()
        elif call in schema.SYNCS and file in caches:
            for cache in caches[file]:
                cache.sync(*((offset or 0, length) if call == "sync_file_range" and length else ()))
        elif call in schema.WRITES and offset is not None and (result or 0) > 0:
            if path not in is_counted:
                is_counted[path] = counts(path or "")
            if not is_counted[path]:
                continue
            caches.setdefault(file, (_Folios(False), _Folios(True, path in mapped)))
            for number, cache in enumerate(caches[file]):
                totals[number] += result if flags & schema.DIRECT else cache.write(time, offset, result)
                if flags & (schema.SYNC | schema.DSYNC) and not flags & schema.DIRECT:
                    cache.sync()
    return totals[0], totals[1]
