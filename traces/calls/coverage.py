"""Bytes that recorded writes make dirty, counted as the kernel counts them in ``write_bytes`` of ``/proc/PID/io``.

A page counts each time that it becomes dirty: when it is written first, and again once it has been written back, by a sync or since it
has been dirty for long.  Writes past the page cache count by their bytes.
"""

from collections.abc import Callable

import pyarrow as pa

from flashsim.core.units import SECONDS
from traces.calls import schema
from traces.calls.page_cache import PAGE

#: Time after which Linux writes a dirty page back, ns.
_EXPIRY = 30 * SECONDS
_COLUMNS = ("time", "call", "file", "path", "offset", "length", "result", "flags")


def dirtied_bytes(table: pa.Table, counts: Callable[[str], bool] = lambda path: True) -> int:
    """Bytes that the writes of recorded calls (`schema.SCHEMA`) make dirty, on files of which the kernel counts them, by their path."""
    of_files = table.filter(pa.compute.and_(pa.compute.equal(table["kind"], "file"), pa.compute.is_null(table["error"])))
    since, total, is_counted = dict[int, dict[int, int]](), 0, dict[str, bool]()
    for time, call, file, path, offset, length, result, flags in zip(*(of_files[name].to_pylist() for name in _COLUMNS), strict=True):
        if call in ("sync", "syncfs"):
            since.clear()
        elif call in schema.SYNCS:
            pages = since.get(file, {})
            if call == "sync_file_range" and length:
                for page in range((offset or 0) // PAGE, -(-((offset or 0) + length) // PAGE)):
                    pages.pop(page, None)
            else:
                pages.clear()
        elif call in schema.WRITES and offset is not None and (result or 0) > 0:
            if path not in is_counted:
                is_counted[path] = counts(path or "")
            if not is_counted[path]:
                continue
            if flags & schema.DIRECT:
                total += result
                continue
            pages = since.setdefault(file, {})
            for page in range(offset // PAGE, (offset + result - 1) // PAGE + 1):
                if time - pages.get(page, -_EXPIRY) >= _EXPIRY:
                    pages[page], total = time, total + PAGE
            if flags & (schema.SYNC | schema.DSYNC):
                pages.clear()
    return total
