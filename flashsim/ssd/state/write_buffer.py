"""The write buffer's state without a clock: which logical pages wait there to be written to flash, and what of them has arrived.

A page that the host writes gets an entry, or changes the one that it has.  While more entries wait than the threshold allows, the oldest
leaves: its write to flash is planned, and from then on reads go to the flash, in order behind that write.  Room in the buffer is held
until the write has ended; that is the business of the clock.  A page of which only some sectors are in the buffer is completed from flash
when it leaves; a read that needs other sectors makes it leave at once.

Row 0 of the array has the scalars; the others are entries, found by a hash of their page.
"""

import numpy as np

from flashsim.core.errors import RefusedError
from flashsim.core.kernel import lean_kernel
from flashsim.core.records import Records
from flashsim.core.request import Integers
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.flash_array import PROGRAM_PAGE, STORE_PAGE
from flashsim.ssd.state.pools import next_write_id

# Scalars, in row 0: how many pages the buffer holds (0: there is none), how many entries may wait, how many do, the oldest and the newest,
# unused rows; whether writes are acknowledged only when they are programmed.
PLACES, THRESHOLD, WAITING_ENTRIES, OLDEST_ENTRY, NEWEST_ENTRY, UNUSED_ENTRY, WRITE_THROUGH = range(7)
# Columns of an entry.  SECTOR_MASK has a bit for each sector that the buffer holds, ENTRY_ID is the write id of the newest of them, and
# ARRIVED that of the newest that came over the link as a whole.  FILLING is the transfer that is to bring the newest (-1: it has ended).
# OLDER and NEWER link entries in the order in which they came; NEXT_IN_BUCKET those of one hash, from BUCKET of the row of that number.
PAGE, SECTOR_MASK, ENTRY_ID, ARRIVED, FILLING, OLDER, NEWER, NEXT_IN_BUCKET, BUCKET = range(9)
BUFFER_COLUMNS = 9

_MOST_SECTORS = 62  # bits of a mask


def empty_buffer(parameters: SsdParameters) -> Integers:
    """The buffer array of a drive, shape (entries + 1, BUFFER_COLUMNS)."""
    places = parameters.buffer_pages
    if places and parameters.sectors_per_page > _MOST_SECTORS:
        raise RefusedError(f"write_buffer: flash pages of {parameters.sectors_per_page} sectors, but at most {_MOST_SECTORS} are supported")
    threshold = min(int(parameters.write_buffer_threshold * places), max(0, places - 1))
    buffer = np.zeros((threshold + 3, BUFFER_COLUMNS), np.int64)
    buffer[0, PLACES] = places
    buffer[0, THRESHOLD] = threshold
    buffer[0, WRITE_THROUGH] = parameters.write_buffer_mode == "write-through"
    clear_buffer(buffer)
    return buffer


def clear_buffer(buffer: Integers) -> None:
    buffer[0, WAITING_ENTRIES] = 0
    buffer[0, OLDEST_ENTRY] = buffer[0, NEWEST_ENTRY] = -1
    buffer[0, UNUSED_ENTRY] = 1
    buffer[1:, NEWER] = np.arange(2, len(buffer) + 1)
    buffer[-1, NEWER] = -1
    buffer[1:, BUCKET] = -1


def waiting_entries(buffer: Integers) -> list[Integers]:
    """The entries, oldest first."""
    entries, entry = [], int(buffer[0, OLDEST_ENTRY])
    while entry >= 0:
        entries.append(buffer[entry])
        entry = int(buffer[entry, NEWER])
    return entries


@lean_kernel
def bucket_of(buffer: Integers, page: int) -> int:
    """The row whose BUCKET starts the chain of a page's entry."""
    return 1 + page % (buffer.shape[0] - 1)


@lean_kernel
def find_entry(buffer: Integers, page: int) -> int:
    """The entry of a logical page, or -1."""
    if buffer[0, WAITING_ENTRIES] == 0:
        return -1
    entry = buffer[bucket_of(buffer, page), BUCKET]
    while entry >= 0 and buffer[entry, PAGE] != page:
        entry = buffer[entry, NEXT_IN_BUCKET]
    return entry


@lean_kernel
def add_entry(buffer: Integers, page: int) -> int:
    """A new entry, the newest, of a page that has none; return it."""
    entry = buffer[0, UNUSED_ENTRY]
    buffer[0, UNUSED_ENTRY] = buffer[entry, NEWER]
    buffer[entry, PAGE] = page
    buffer[entry, SECTOR_MASK] = 0
    buffer[entry, ARRIVED] = 0
    buffer[entry, FILLING] = -1
    newest = buffer[0, NEWEST_ENTRY]
    buffer[entry, OLDER] = newest
    buffer[entry, NEWER] = -1
    if newest >= 0:
        buffer[newest, NEWER] = entry
    else:
        buffer[0, OLDEST_ENTRY] = entry
    buffer[0, NEWEST_ENTRY] = entry
    bucket = bucket_of(buffer, page)
    buffer[entry, NEXT_IN_BUCKET] = buffer[bucket, BUCKET]
    buffer[bucket, BUCKET] = entry
    buffer[0, WAITING_ENTRIES] += 1
    return entry


@lean_kernel
def remove_entry(buffer: Integers, entry: int) -> None:
    """Take an entry out; what it said can be read until the next is added."""
    older, newer = buffer[entry, OLDER], buffer[entry, NEWER]
    if older >= 0:
        buffer[older, NEWER] = newer
    else:
        buffer[0, OLDEST_ENTRY] = newer
    if newer >= 0:
        buffer[newer, OLDER] = older
    else:
        buffer[0, NEWEST_ENTRY] = older
    bucket = bucket_of(buffer, buffer[entry, PAGE])
    other = buffer[bucket, BUCKET]
    if other == entry:
        buffer[bucket, BUCKET] = buffer[entry, NEXT_IN_BUCKET]
    else:
        while buffer[other, NEXT_IN_BUCKET] != entry:
            other = buffer[other, NEXT_IN_BUCKET]
        buffer[other, NEXT_IN_BUCKET] = buffer[entry, NEXT_IN_BUCKET]
    buffer[entry, NEWER] = buffer[0, UNUSED_ENTRY]
    buffer[0, UNUSED_ENTRY] = entry
    buffer[0, WAITING_ENTRIES] -= 1


@lean_kernel
def sector_mask(first: int, count: int) -> int:
    """The mask of `count` sectors of a page from `first` on."""
    return ((1 << count) - 1) << first


@lean_kernel
def enter_buffer(flash: Flash, entry: int, page: int, mask: int) -> int:
    """Note that sectors of a page are to be written: in its entry, or a new one if `entry` is -1; return it."""
    if entry < 0:
        entry = add_entry(flash.buffer, page)
    flash.buffer[entry, SECTOR_MASK] |= mask
    flash.buffer[entry, ENTRY_ID] = next_write_id(flash.control)
    return entry


@lean_kernel
def is_whole(flash: Flash, entry: int) -> bool:
    """Whether the buffer holds all sectors of an entry's page."""
    return flash.buffer[entry, SECTOR_MASK] == sector_mask(0, flash.control.page_sectors)


@lean_kernel
def leave_buffer(flash: Flash, entry: int, written: int) -> int:
    """An entry's page leaves for flash by a plan that was made after `written` writes and trims; the row that stores it.

    What is stored keeps the write id that it got when the host wrote it.  The one that the plan took goes to the next write,
    unless other ids followed it.
    """
    at = 0
    while flash.plan[at].kind != PROGRAM_PAGE:
        at += 1
    if flash.control.sequence == written + 1:
        flash.control.id_base += 1
    flash.plan[at].kind = STORE_PAGE
    flash.plan[at].write_id = flash.buffer[entry, ENTRY_ID]
    remove_entry(flash.buffer, entry)
    return at


@lean_kernel
def first_needed(plan: Records, at: int) -> int:
    """The row of a plan that must end first for row `at` to start: the one at the end of its chain of needs."""
    while plan[at].needs >= 0:
        at = plan[at].needs
    return at
