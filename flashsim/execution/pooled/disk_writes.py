"""Writes to disk as SimPy events, in order page by page."""

from collections.abc import Callable, Sequence

import simpy

#: The first page of a write, how many there are, how many of them are cleaned, and what happens when it has ended.
_Write = tuple[int, int, int, simpy.Event]


class DiskWrites:
    """Writes of pages, none of which begins while another one of the same page is outstanding: a disk may serve the later one first.

    Parameters
    ----------
    env
        The clock.
    ask
        Asks the disk for the writing of pages: the first, how many, and what happens when it has ended.
    note
        Counts by name.
    """

    def __init__(self, env: simpy.Environment, ask: Callable[[int, int, simpy.Event], object], note: Callable[..., None]) -> None:
        self._env, self._ask, self._note = env, ask, note
        self._outstanding: set[int] = set()
        self._deferred: list[_Write] = []

    def write(self, page: int, count: int, cleaned: int = 0) -> simpy.Event:
        """Write pages as soon as no earlier write of one of them is outstanding or deferred."""
        write = page, count, cleaned, self._env.event()
        if self._must_wait(page, count, self._deferred):
            self._deferred.append(write)
        else:
            self._begin(*write)
        return write[-1]

    def _must_wait(self, page: int, count: int, ahead: Sequence[_Write]) -> bool:
        overlaps = any(first < page + count and page < first + pages for first, pages, *_ in ahead)
        return overlaps or not self._outstanding.isdisjoint(range(page, page + count))

    def _begin(self, page: int, count: int, cleaned: int, event: simpy.Event) -> None:
        self._note(disk_writes=1, disk_pages_written=count, pages_cleaned=cleaned)
        self._outstanding.update(range(page, page + count))
        assert event.callbacks is not None
        event.callbacks.insert(0, lambda _: self._end(page, count))  # before whoever waits for it
        self._ask(page, count, event)

    def _end(self, page: int, count: int) -> None:
        self._outstanding.difference_update(range(page, page + count))
        deferred, self._deferred = self._deferred, []
        for write in deferred:
            if self._must_wait(*write[:2], self._deferred):
                self._deferred.append(write)
            else:
                self._begin(*write)
