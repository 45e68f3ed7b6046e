"""The write buffer's state without a clock: which logical pages wait there to be written to flash, and what of them has arrived.

A page that the host writes gets an entry, or changes the one that it has.  While more entries wait than the threshold allows, the oldest
leaves: its write to flash is planned, and from then on reads go to the flash, in order behind that write.  Room in the buffer is held
until the write has ended; that is the business of the clock.  A page of which only some sectors are in the buffer is completed from flash
when it leaves; a read that needs other sectors makes it leave at once.

A buffer that is coalescing takes only pages of which a command writes a part, and lets a page leave as soon as commands have written all of
it: a page of which each half is written by a command of its own is programmed once.  A command that writes a whole page drops its entry.

Where several pages are programmed at once, the oldest of the entries leave as soon as more wait than the threshold allows, as many of one
placement handle as that takes: a group.  A page that must leave takes the oldest others along.  At a flush, and where nothing else waits, a
group is not full.

Where a batch leaves at once, groups follow the first as long as more wait than the threshold less the batch: behind the last page of the
command that was one too many.  So all dies program together, and while they do nothing else leaves.

Entries are found by a hash of their page.

Which commands wait for the medium, that is, until what they make durable is on flash, is one rule: `needs_medium`.
"""

import numpy as np

from flashsim.core.errors import RefusedError
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.records import RecordArray, empty_record, empty_table
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, WRITE
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.state.flash import BUFFER, ENTRY, Flash
from flashsim.ssd.state.flash_array import PROGRAM_PAGE, STORE_PAGE
from flashsim.ssd.state.pacing import forget_debt, set_pace
from flashsim.ssd.state.pools import join_ring, leave_ring, next_write_id

_MOST_SECTORS = 62  # bits of a mask
_GOLDEN = 2654435769  # 2^32 over the golden ratio, whose multiples fill the range evenly


def empty_buffer(parameters: SsdParameters) -> tuple[RecordArray, RecordArray]:
    """BUFFER and ENTRY of a drive."""
    places = parameters.buffer_pages
    if places and parameters.sectors_per_unit > _MOST_SECTORS:
        raise RefusedError(f"write_buffer: pages of {parameters.sectors_per_unit} sectors, but at most {_MOST_SECTORS} are supported")
    buffer = empty_record(BUFFER)
    buffer.places = places
    buffer.batch = parameters.write_buffer_batch // parameters.unit_size
    most, least = max(0, places - 1), max(parameters.group, int(buffer.batch)) - 1
    buffer.threshold = max(min(int(parameters.write_buffer_threshold * places), most), least)
    buffer.write_through = places > 0 and parameters.write_buffer_mode == "write-through"
    buffer.volatile = (places > 0 or parameters.continuation_latency > 0) and not parameters.power_protected
    buffer.coalescing = places > 0 and parameters.write_buffer_mode == "coalescing"
    set_pace(buffer, parameters)
    entries = empty_table(int(buffer.threshold) + 2, ENTRY)
    clear_buffer(buffer, entries)
    return buffer, entries


def clear_buffer(buffer: RecordArray, entries: RecordArray) -> None:
    buffer.waiting = buffer.unused = 0
    buffer.oldest = -1
    forget_debt(buffer)
    entries.after = np.arange(1, len(entries) + 1)
    entries.bucket = -1


def waiting_entries(flash: Flash) -> list[RecordArray]:
    entries, entry = [], int(flash.buffer.oldest)
    for _ in range(flash.buffer.waiting):
        entries.append(flash.entries[entry])
        entry = int(flash.entries[entry].after)
    return entries


@inlined_kernel
def needs_medium(buffer: RecordArray, operation: int, flags: int) -> bool:
    """True if a command is acknowledged only when what it makes durable is on flash, on a drive that acknowledges other writes earlier.

    A write to a buffer that writes through always is.  A flush or a forced write is, unless the buffer survives a power cut: there whatever
    has arrived is durable.  A trim never is, since it takes effect at its admission, and survives.
    """
    if operation == WRITE and buffer.write_through != 0:
        return True
    forced = operation == FLUSH or (operation == WRITE and flags & FORCE_UNIT_ACCESS != 0)
    return forced and buffer.volatile != 0


@lean_kernel
def find_entry(flash: Flash, page: int) -> int:
    if flash.buffer.waiting == 0:
        return -1
    entry = flash.entries[page % flash.entries.shape[0]].bucket
    while entry >= 0 and flash.entries[entry].page != page:
        entry = flash.entries[entry].next_in_bucket
    return entry


@lean_kernel
def add_entry(flash: Flash, page: int) -> int:
    """A new entry, the newest, of a page that has none; return it."""
    buffer, entries, entry = flash.buffer, flash.entries, flash.buffer.unused
    added, bucket = entries[entry], page % entries.shape[0]
    buffer.unused = added.after
    added.page, added.sector_mask, added.arrived, added.filling = page, 0, 0, -1
    buffer.oldest = join_ring(entries, buffer.oldest, entry)
    added.next_in_bucket = entries[bucket].bucket
    entries[bucket].bucket = entry
    buffer.waiting += 1
    return entry


@lean_kernel
def remove_entry(flash: Flash, entry: int) -> None:
    """Take an entry out; what it said can be read until the next is added."""
    buffer, entries, removed = flash.buffer, flash.entries, flash.entries[entry]
    buffer.oldest = leave_ring(entries, buffer.oldest, entry)
    bucket = removed.page % entries.shape[0]
    other = entries[bucket].bucket
    if other == entry:
        entries[bucket].bucket = removed.next_in_bucket
    else:
        while entries[other].next_in_bucket != entry:
            other = entries[other].next_in_bucket
        entries[other].next_in_bucket = removed.next_in_bucket
    removed.after = buffer.unused
    buffer.unused = entry
    buffer.waiting -= 1


@lean_kernel
def sector_mask(first: int, count: int) -> int:
    """The mask of `count` sectors of a page from `first` on."""
    return ((1 << count) - 1) << first


@lean_kernel
def enter_buffer(flash: Flash, entry: int, page: int, mask: int) -> int:
    """Note that sectors of a page are to be written: in its entry, or a new one if `entry` is -1; return it."""
    if entry < 0:
        entry = add_entry(flash, page)
    flash.entries[entry].sector_mask |= mask
    flash.entries[entry].stream = flash.control.stream
    flash.entries[entry].write_id = next_write_id(flash.control)
    return entry


@lean_kernel
def is_whole(flash: Flash, entry: int) -> bool:
    """True if the buffer holds all sectors of an entry's page."""
    return flash.entries[entry].sector_mask == sector_mask(0, flash.control.page_sectors)


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
    flash.plan[at].write_id = flash.entries[entry].write_id
    remove_entry(flash, entry)
    return at


@lean_kernel
def leave_together(flash: Flash, page: int, own: int) -> int:
    """The next group of entries leaves for flash: those of the `own` pages up to `page`, and then the oldest; return their number.

    All are of one stream, that of the first.  They are noted in `flash.group`, for `flashsim.ssd.state.collection.write_group`; what they
    said can be read until the next is added.
    """
    count, entry = 0, flash.buffer.oldest
    stream = flash.entries[find_entry(flash, page - own + 1) if own > 0 else entry].stream
    for at in range(own + flash.buffer.waiting):
        if count == flash.control.group:
            break
        chosen = find_entry(flash, page - own + 1 + at) if at < own else entry
        if at >= own:
            entry = flash.entries[entry].after
            if page - own < flash.entries[chosen].page <= page or flash.entries[chosen].stream != stream:
                continue
        member = flash.group[count]
        member.page, member.part, member.entry = flash.entries[chosen].page, 0 if is_whole(flash, chosen) else 1, chosen
        member.write_id = flash.entries[chosen].write_id
        count += 1
    for at in range(count):
        remove_entry(flash, flash.group[at].entry)
    return count


@inlined_kernel
def begin_batch(buffer: RecordArray) -> bool:
    """A page was one too many: note that a batch leaves, where there are batches; whether there are."""
    buffer.rounding = (buffer.rounding + _GOLDEN) & 0xFFFFFFFF
    return buffer.batch > 0


@lean_kernel
def first_needed(plan: RecordArray, at: int) -> int:
    """The row of a plan that must end first for row `at` to start: the one at the end of its chain of needs."""
    while plan[at].needs >= 0:
        at = plan[at].needs
    return at
