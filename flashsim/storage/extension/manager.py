"""The SSD manager: frames are taken, held while they are read or written, cleaned and given up; when is the driver's business.

A frame stands in a heap of its partition while nobody reads or writes it.  Source: Do, "Database Management Systems on Flash", 2012, 3.2
and 3.3.
"""

from __future__ import annotations

from flashsim.core.draws import mixed
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.policies import Policies
from flashsim.core.replacement import NONE
from flashsim.storage.extension.design import DROP, EVICTED, FETCHED, KEY_OF, MODIFIED, SERVED, of_flags, of_page
from flashsim.storage.extension.heaps import change, insert, remove, root_of
from flashsim.storage.extension.state import (
    BEFORE,
    CLEAN,
    DIRTY,
    DOOMED,
    FILL,
    FRAME,
    FREE,
    HOLD_SHIFT,
    INVALID,
    KEY,
    LAST,
    MISSES,
    NEWER,
    NEWER_FRAMES,
    ONE_HOLD,
    PAGE,
    PLACE,
    STATUS,
    USED,
    VALID,
    Extension,
)  # fmt: skip


@inlined_kernel
def partition_of(ext: Extension, page: int) -> int:
    """The partition in which a page may have a frame."""
    return (mixed(int(page)) * ext.partitions.shape[0]) >> 32


@inlined_kernel
def note_miss(ext: Extension, page: int) -> None:
    """A page is asked for that memory does not hold."""
    ext.numbers[MISSES] += 1
    ext.pages[page, BEFORE] = ext.pages[page, LAST]
    ext.pages[page, LAST] = ext.numbers[MISSES]


@inlined_kernel
def frame_of(ext: Extension, page: int) -> int:
    """The frame that holds a page's newest version but for memory's, or `NONE`."""
    return int(ext.pages[page, FRAME]) - 1 if ext.pages[page, STATUS] & VALID else NONE


@inlined_kernel
def _heap_of(ext: Extension, page: int) -> int:
    return DIRTY if ext.pages[page, STATUS] & NEWER else CLEAN


@lean_kernel
def hold(ext: Extension, page: int) -> None:
    """Somebody reads or writes a page's frame from now on: it is neither replaced nor cleaned."""
    if ext.pages[page, STATUS] >> HOLD_SHIFT == 0:
        remove(ext, partition_of(ext, page), _heap_of(ext, page), int(ext.pages[page, FRAME]) - 1)
    ext.pages[page, STATUS] += ONE_HOLD


@lean_kernel
def let_go(ext: Extension, design: Policies, page: int) -> None:
    """One who held a page's frame is done."""
    ext.pages[page, STATUS] -= ONE_HOLD
    status = ext.pages[page, STATUS]
    if status >> HOLD_SHIFT:
        return
    if status & DOOMED:
        _free(ext, page)
    else:
        insert(ext, partition_of(ext, page), _heap_of(ext, page), int(ext.pages[page, FRAME]) - 1, of_page(design[KEY_OF])(ext, page))


@lean_kernel
def _free(ext: Extension, page: int) -> None:
    """A frame that stands in no heap is free."""
    frame, partition = int(ext.pages[page, FRAME]) - 1, partition_of(ext, page)
    ext.frames[frame, PAGE], ext.frames[frame, PLACE] = 0, ext.partitions[partition, FREE]
    ext.partitions[partition, FREE] = frame
    ext.pages[page, FRAME] = ext.pages[page, STATUS] = 0
    ext.numbers[USED] -= 1


@inlined_kernel
def _not_newer(ext: Extension, page: int) -> None:
    if ext.pages[page, STATUS] & NEWER:
        ext.pages[page, STATUS] -= NEWER
        ext.numbers[NEWER_FRAMES] -= 1


@lean_kernel
def drop(ext: Extension, page: int) -> None:
    """Give up a page's frame, as soon as nobody holds it."""
    status = ext.pages[page, STATUS]
    if ext.pages[page, FRAME] == 0 or status & DOOMED:
        return
    if not status & VALID:
        ext.numbers[INVALID] -= 1
    held = status >> HOLD_SHIFT
    if not held:
        remove(ext, partition_of(ext, page), _heap_of(ext, page), int(ext.pages[page, FRAME]) - 1)
    _not_newer(ext, page)
    ext.pages[page, STATUS] &= ~VALID
    if held:
        ext.pages[page, STATUS] |= DOOMED
    else:
        _free(ext, page)


@lean_kernel
def invalidate(ext: Extension, page: int) -> None:
    """What a page's frame holds is not valid any more, but the frame stays taken."""
    status = ext.pages[page, STATUS]
    if status & VALID:
        ext.pages[page, STATUS] = status - VALID
        ext.numbers[INVALID] += 1


@lean_kernel
def cleaned(ext: Extension, page: int) -> None:
    """The disk has what a page's frame holds, which somebody still holds."""
    _not_newer(ext, page)


@lean_kernel
def least(ext: Extension, design: Policies, page: int) -> int:
    """The page that would be replaced if another one entered the partition of a page: what is the same on disk; or `NONE`."""
    partition = partition_of(ext, page)
    while True:
        frame = root_of(ext, partition, CLEAN)
        if frame == NONE:
            return NONE
        held = int(ext.frames[frame, PAGE])
        key = of_page(design[KEY_OF])(ext, held)
        if key <= ext.heaps[ext.frames[frame, PLACE], KEY]:
            return held
        change(ext, partition, CLEAN, frame, key)


@lean_kernel
def oldest_newer(ext: Extension, design: Policies, partition: int) -> int:
    """The page of a partition that is cleaned first, or `NONE`."""
    while True:
        frame = root_of(ext, partition, DIRTY)
        if frame == NONE:
            return NONE
        held = int(ext.frames[frame, PAGE])
        key = of_page(design[KEY_OF])(ext, held)
        if key <= ext.heaps[ext.frames[frame, PLACE], KEY]:
            return held
        change(ext, partition, DIRTY, frame, key)


@lean_kernel
def admit(ext: Extension, design: Policies, page: int, newer: int) -> int:
    """Take a frame for a page, which is held for its writing; returns the frame, or `NONE` if there is none to take.

    `newer` is 1 if the disk does not get this version as well.
    """
    partition = partition_of(ext, page)
    if ext.pages[page, FRAME]:
        status = ext.pages[page, STATUS]
        if status >> HOLD_SHIFT:
            return NONE
        frame = int(ext.pages[page, FRAME]) - 1
        remove(ext, partition, _heap_of(ext, page), frame)
        if not status & VALID:
            ext.numbers[INVALID] -= 1
        _not_newer(ext, page)
    else:
        if ext.partitions[partition, FREE] == NONE:
            leaving = least(ext, design, page)
            if leaving == NONE:
                return NONE
            drop(ext, leaving)
        frame = int(ext.partitions[partition, FREE])
        ext.partitions[partition, FREE] = ext.frames[frame, PLACE]
        ext.frames[frame, PAGE] = page
        ext.pages[page, FRAME] = frame + 1
        ext.numbers[USED] += 1
        if ext.numbers[USED] >= ext.numbers[FILL]:
            ext.numbers[FILL] = 0
    ext.pages[page, STATUS] = VALID + ONE_HOLD
    if newer:
        ext.pages[page, STATUS] += NEWER
        ext.numbers[NEWER_FRAMES] += 1
    return frame


@lean_kernel
def when_evicted(ext: Extension, design: Policies, page: int, flags: int) -> int:
    """What the design does with a page that leaves memory."""
    return int(of_flags(design[EVICTED])(ext, page, flags))


@lean_kernel
def when_fetched(ext: Extension, design: Policies, page: int, flags: int) -> int:
    """What the design does with a page that has been read from disk."""
    return int(of_flags(design[FETCHED])(ext, page, flags))


@lean_kernel
def when_served(ext: Extension, design: Policies, page: int, flags: int) -> None:
    """Do what the design wants with the copy from which a page has been read."""
    if of_flags(design[SERVED])(ext, page, flags) & DROP:
        drop(ext, page)


@lean_kernel
def when_modified(ext: Extension, design: Policies, page: int) -> None:
    """Do what the design wants with a copy that is not the newest any more; what it does not give up is not valid at least."""
    if ext.pages[page, STATUS] & VALID:
        if of_page(design[MODIFIED])(ext, page) & DROP:
            drop(ext, page)
        else:
            invalidate(ext, page)
