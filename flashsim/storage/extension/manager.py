"""The SSD manager: frames are taken, held while they are read or written, cleaned and given up; when is the driver's business.

A frame stands in a heap of its partition while nobody reads or writes it.  Source: Do, "Database Management Systems on Flash", 2012, 3.2
and 3.3.
"""

from flashsim.core.draws import mixed
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.policies import Policies
from flashsim.core.replacement import NONE
from flashsim.storage.extension.design import DROP, EVICTED, FETCHED, KEY_OF, MODIFIED, SERVED, of_flags, of_page
from flashsim.storage.extension.heaps import change, insert, remove, root_of
from flashsim.storage.extension.state import (
    AHEAD,
    BEFORE,
    BEGIN,
    CLEAN,
    DIRTY,
    DOOMED,
    END,
    FILL,
    FRAME,
    FREE,
    HOLD_SHIFT,
    INVALID,
    KEY,
    LAPS,
    LAST,
    MARKS,
    MISSES,
    NEWER,
    NEWER_FRAMES,
    NEXT,
    ONE_HOLD,
    PAGE,
    PLACE,
    READ_AGAIN,
    ROTATES,
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
    ext.pages[page, STATUS] -= ONE_HOLD
    status = ext.pages[page, STATUS]
    if status >> HOLD_SHIFT:
        return
    if status & DOOMED:
        _free(ext, page)
    else:
        insert(ext, partition_of(ext, page), _heap_of(ext, page), int(ext.pages[page, FRAME]) - 1, of_page(design[KEY_OF])(ext, page))


@inlined_kernel
def _free(ext: Extension, page: int) -> None:
    frame, partition = int(ext.pages[page, FRAME]) - 1, partition_of(ext, page)
    ext.frames[frame, PAGE] = 0
    if not ext.numbers[ROTATES]:
        ext.frames[frame, PLACE] = ext.partitions[partition, FREE]
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


@inlined_kernel
def invalidate(ext: Extension, page: int) -> None:
    """What a page's frame holds is not valid any more, but the frame stays taken."""
    status = ext.pages[page, STATUS]
    if status & VALID:
        ext.pages[page, STATUS] = status - VALID
        ext.numbers[INVALID] += 1


@inlined_kernel
def cleaned(ext: Extension, page: int) -> None:
    """The disk has what a page's frame holds, which somebody still holds."""
    _not_newer(ext, page)


@lean_kernel
def _first_of(ext: Extension, design: Policies, partition: int, heap: int) -> int:
    """The page of a heap whose key is least, or `NONE`; keys may have grown since they came into the heap."""
    while True:
        frame = root_of(ext, partition, heap)
        if frame == NONE:
            return NONE
        held = int(ext.frames[frame, PAGE])
        key = of_page(design[KEY_OF])(ext, held)
        if key <= ext.heaps[ext.frames[frame, PLACE], KEY]:
            return held
        change(ext, partition, heap, frame, key)


@lean_kernel
def least(ext: Extension, design: Policies, page: int) -> int:
    """The page that would be replaced if another one entered the partition of a page: what is the same on disk; or `NONE`."""
    return _first_of(ext, design, partition_of(ext, page), CLEAN)


@lean_kernel
def oldest_newer(ext: Extension, design: Policies, partition: int) -> int:
    """The page of a partition that is cleaned first, or `NONE`."""
    return _first_of(ext, design, partition, DIRTY)


@lean_kernel
def turn_of(ext: Extension, page: int) -> int:
    """When it was the turn of a page's frame last, where frames are taken in rotation, in turns of its partition."""
    partition, frame = ext.partitions[partition_of(ext, page)], ext.pages[page, FRAME] - 1
    laps = partition[LAPS] - 1 if frame >= partition[NEXT] else partition[LAPS]
    return int(laps * (partition[END] - partition[BEGIN]) + frame - partition[BEGIN])


@lean_kernel
def due(ext: Extension, design: Policies) -> int:
    """A page newer than on disk whose frame has its turn soon, where frames are taken in rotation; or `NONE`."""
    if not ext.numbers[ROTATES]:
        return NONE
    for number in range(ext.partitions.shape[0]):
        page, partition = oldest_newer(ext, design, number), ext.partitions[number]
        if page != NONE:
            key = ext.heaps[ext.frames[ext.pages[page, FRAME] - 1, PLACE], KEY]
            begins = (partition[LAPS] - 1) * (partition[END] - partition[BEGIN]) + partition[NEXT] - partition[BEGIN]
            if key - begins < ext.numbers[AHEAD]:
                return page
    return NONE


@lean_kernel
def run_of(ext: Extension, page: int, begin: int, end: int, most: int) -> tuple[int, int]:
    """The pages beside a page, between bounds, that are cleaned with it: the first of all, and how many they are."""
    first, behind = page, page + 1
    while first > begin and behind - first < most and ext.pages[first - 1, STATUS] == VALID | NEWER:
        first -= 1
    while behind < end and behind - first < most and ext.pages[behind, STATUS] == VALID | NEWER:
        behind += 1
    return first, behind - first


@lean_kernel
def still_newer(ext: Extension, page: int, end: int) -> tuple[int, int]:
    """The next pages in a row, from a page on, that are newer than on disk yet: the first, and how many they are, perhaps none."""
    while page < end and not ext.pages[page, STATUS] & NEWER:
        page += 1
    behind = page
    while behind < end and ext.pages[behind, STATUS] & NEWER:
        behind += 1
    return page, behind - page


@lean_kernel
def _in_turn(ext: Extension, number: int) -> int:
    """The frame of a partition whose turn it is, free; or `NONE` if its page is newer than on disk.

    A frame that is held is passed over, and so is, once, one whose page was read again.
    """
    partition = ext.partitions[number]
    for _ in range(partition[END] - partition[BEGIN]):
        frame = partition[NEXT]
        page = ext.frames[frame, PAGE]
        passed = page > 0 and (ext.pages[page, STATUS] >> HOLD_SHIFT > 0 or ext.pages[page, MARKS] & READ_AGAIN > 0)
        if page > 0 and not passed:
            if ext.pages[page, STATUS] & NEWER:
                return NONE
            drop(ext, page)
        partition[NEXT] += 1
        if partition[NEXT] == partition[END]:
            partition[NEXT] = partition[BEGIN]
            partition[LAPS] += 1
        if not passed:
            return int(frame)
        ext.pages[page, MARKS] &= ~READ_AGAIN
    return NONE


@inlined_kernel
def _take(ext: Extension, design: Policies, page: int) -> int:
    """A frame for a page that has none, or `NONE`."""
    partition = partition_of(ext, page)
    if ext.numbers[ROTATES]:
        return _in_turn(ext, partition)
    if ext.partitions[partition, FREE] == NONE:
        leaving = least(ext, design, page)
        if leaving == NONE:
            return NONE
        drop(ext, leaving)
    frame = int(ext.partitions[partition, FREE])
    ext.partitions[partition, FREE] = ext.frames[frame, PLACE]
    return frame


@lean_kernel
def admit(ext: Extension, design: Policies, page: int, newer: int) -> int:
    """Take a frame for a page, which is held for its writing; returns the frame, or `NONE` if there is none to take.

    `newer` is 1 if the disk does not get this version as well.
    """
    status = ext.pages[page, STATUS]
    if status >> HOLD_SHIFT:
        return NONE
    if ext.pages[page, FRAME] and not ext.numbers[ROTATES]:
        frame = int(ext.pages[page, FRAME]) - 1
        remove(ext, partition_of(ext, page), _heap_of(ext, page), frame)
        if not status & VALID:
            ext.numbers[INVALID] -= 1
        _not_newer(ext, page)
    else:
        drop(ext, page)
        frame = _take(ext, design, page)
        if frame == NONE:
            return NONE
        ext.frames[frame, PAGE] = page
        ext.pages[page, FRAME] = frame + 1
        ext.numbers[USED] += 1
        if ext.numbers[USED] >= ext.numbers[FILL]:
            ext.numbers[FILL] = 0
    ext.pages[page, STATUS] = VALID + ONE_HOLD
    ext.pages[page, MARKS] &= ~READ_AGAIN
    if newer:
        ext.pages[page, STATUS] += NEWER
        ext.numbers[NEWER_FRAMES] += 1
    return frame


@inlined_kernel
def when_evicted(ext: Extension, design: Policies, page: int, flags: int) -> int:
    """What the design does with a page that leaves memory."""
    return int(of_flags(design[EVICTED])(ext, page, flags))


@inlined_kernel
def when_fetched(ext: Extension, design: Policies, page: int, flags: int) -> int:
    """What the design does with a page that has been read from disk; a copy that it does not want is given up."""
    actions = int(of_flags(design[FETCHED])(ext, page, flags))
    if actions & DROP:
        drop(ext, page)
    return actions


@inlined_kernel
def when_served(ext: Extension, design: Policies, page: int, flags: int) -> bool:
    """Do what the design wants with the copy from which a page has been read; whether memory's page is newer than on disk by that."""
    if not of_flags(design[SERVED])(ext, page, flags) & DROP:
        return False
    newer = ext.pages[page, STATUS] & NEWER > 0
    drop(ext, page)
    return bool(newer)


@inlined_kernel
def when_modified(ext: Extension, design: Policies, page: int) -> None:
    """Do what the design wants with a copy that is not the newest any more; what it does not give up is not valid at least."""
    if ext.pages[page, STATUS] & VALID:
        if of_page(design[MODIFIED])(ext, page) & DROP:
            drop(ext, page)
        else:
            invalidate(ext, page)
