"""The SSD manager: frames are taken, held while they are read or written, cleaned and given up; when is the driver's business.

A frame stands in one of the two heaps of its partition while nobody reads or writes it, the least key on top; it is found there, and
leaves, in logarithmic time.  Source: Do, "Database Management Systems on Flash", 2012, 3.2 and 3.3.
"""

from flashsim.core.draws import mix_bits
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.policies import Policies
from flashsim.core.replacement import NONE
from flashsim.storage.extension import state
from flashsim.storage.extension.design import DROP, EVICTED, FETCHED, KEY_OF, MODIFIED, SERVED, of_flags, of_page
from flashsim.storage.extension.state import Extension


@inlined_kernel
def _ends(ext: Extension, partition: int, heap: int) -> tuple[int, int]:
    """Place of a heap's root, and the direction in which the heap grows."""
    return (int(ext.partitions[partition, state.BEGIN]), 1) if heap == state.CLEAN else (int(ext.partitions[partition, state.END]) - 1, -1)


@inlined_kernel
def _set(ext: Extension, at: int, key: int, frame: int) -> None:
    ext.heaps[at, state.KEY], ext.heaps[at, state.ENTRY] = key, frame
    ext.frames[frame, state.PLACE] = at


@lean_kernel
def _sift(ext: Extension, partition: int, heap: int, place: int, key: int, frame: int) -> None:
    root, step = _ends(ext, partition, heap)
    size = ext.partitions[partition, heap]
    while place > 0 and ext.heaps[root + step * ((place - 1) // 2), state.KEY] > key:
        above = root + step * ((place - 1) // 2)
        _set(ext, root + step * place, ext.heaps[above, state.KEY], ext.heaps[above, state.ENTRY])
        place = (place - 1) // 2
    while True:
        below = 2 * place + 1
        if below + 1 < size and ext.heaps[root + step * (below + 1), state.KEY] < ext.heaps[root + step * below, state.KEY]:
            below += 1
        if below >= size or ext.heaps[root + step * below, state.KEY] >= key:
            break
        _set(ext, root + step * place, ext.heaps[root + step * below, state.KEY], ext.heaps[root + step * below, state.ENTRY])
        place = below
    _set(ext, root + step * place, key, frame)


@inlined_kernel
def insert(ext: Extension, partition: int, heap: int, frame: int, key: int) -> None:
    place = int(ext.partitions[partition, heap])
    ext.partitions[partition, heap] += 1
    _sift(ext, partition, heap, place, key, frame)


@inlined_kernel
def remove(ext: Extension, partition: int, heap: int, frame: int) -> None:
    root, step = _ends(ext, partition, heap)
    place = (int(ext.frames[frame, state.PLACE]) - root) * step
    ext.partitions[partition, heap] -= 1
    last = root + step * int(ext.partitions[partition, heap])
    if root + step * place != last:
        _sift(ext, partition, heap, place, ext.heaps[last, state.KEY], ext.heaps[last, state.ENTRY])


@inlined_kernel
def change(ext: Extension, partition: int, heap: int, frame: int, key: int) -> None:
    root, step = _ends(ext, partition, heap)
    _sift(ext, partition, heap, (int(ext.frames[frame, state.PLACE]) - root) * step, key, frame)


@inlined_kernel
def root_of(ext: Extension, partition: int, heap: int) -> int:
    """The frame with the least key, or `NONE`."""
    if ext.partitions[partition, heap] == 0:
        return NONE
    root, _ = _ends(ext, partition, heap)
    return int(ext.heaps[root, state.ENTRY])


@inlined_kernel
def partition_of(ext: Extension, page: int) -> int:
    """The partition in which a page may have a frame."""
    return (mix_bits(int(page)) * ext.partitions.shape[0]) >> 32


@inlined_kernel
def note_miss(ext: Extension, page: int) -> None:
    """A page is asked for that memory does not hold."""
    ext.numbers[state.MISSES] += 1
    ext.pages[page, state.BEFORE] = ext.pages[page, state.LAST]
    ext.pages[page, state.LAST] = ext.numbers[state.MISSES]


@inlined_kernel
def frame_of(ext: Extension, page: int) -> int:
    """The frame that holds a page's newest version but for memory's, or `NONE`."""
    return int(ext.pages[page, state.FRAME]) - 1 if ext.pages[page, state.STATUS] & state.VALID else NONE


@inlined_kernel
def _heap_of(ext: Extension, page: int) -> int:
    return state.DIRTY if ext.pages[page, state.STATUS] & state.NEWER else state.CLEAN


@lean_kernel
def hold(ext: Extension, page: int) -> None:
    """Somebody reads or writes a page's frame from now on: it is neither replaced nor cleaned."""
    if ext.pages[page, state.STATUS] >> state.HOLD_SHIFT == 0:
        remove(ext, partition_of(ext, page), _heap_of(ext, page), int(ext.pages[page, state.FRAME]) - 1)
    ext.pages[page, state.STATUS] += state.ONE_HOLD


@lean_kernel
def let_go(ext: Extension, design: Policies, page: int) -> None:
    ext.pages[page, state.STATUS] -= state.ONE_HOLD
    status = ext.pages[page, state.STATUS]
    if status >> state.HOLD_SHIFT:
        return
    if status & state.DOOMED:
        _free(ext, page)
    else:
        insert(ext, partition_of(ext, page), _heap_of(ext, page), int(ext.pages[page, state.FRAME]) - 1, of_page(design[KEY_OF])(ext, page))


@inlined_kernel
def _free(ext: Extension, page: int) -> None:
    frame, partition = int(ext.pages[page, state.FRAME]) - 1, partition_of(ext, page)
    ext.frames[frame, state.PAGE] = 0
    if not ext.numbers[state.ROTATES]:
        ext.frames[frame, state.PLACE] = ext.partitions[partition, state.FREE]
        ext.partitions[partition, state.FREE] = frame
    ext.pages[page, state.FRAME] = ext.pages[page, state.STATUS] = 0
    ext.numbers[state.USED] -= 1


@inlined_kernel
def note_cleaning(ext: Extension, page: int) -> None:
    """The disk has what a page's frame holds."""
    if ext.pages[page, state.STATUS] & state.NEWER:
        ext.pages[page, state.STATUS] -= state.NEWER
        ext.numbers[state.NEWER_FRAMES] -= 1


@lean_kernel
def drop(ext: Extension, page: int) -> None:
    """Give up a page's frame, as soon as nobody holds it."""
    status = ext.pages[page, state.STATUS]
    if ext.pages[page, state.FRAME] == 0 or status & state.DOOMED:
        return
    if not status & state.VALID:
        ext.numbers[state.INVALID] -= 1
    holds = status >> state.HOLD_SHIFT
    if not holds:
        remove(ext, partition_of(ext, page), _heap_of(ext, page), int(ext.pages[page, state.FRAME]) - 1)
    note_cleaning(ext, page)
    ext.pages[page, state.STATUS] &= ~state.VALID
    if holds:
        ext.pages[page, state.STATUS] |= state.DOOMED
    else:
        _free(ext, page)


@inlined_kernel
def invalidate(ext: Extension, page: int) -> None:
    """Mark the copy in a page's frame as not valid any more; the frame stays taken."""
    status = ext.pages[page, state.STATUS]
    if status & state.VALID:
        ext.pages[page, state.STATUS] = status - state.VALID
        ext.numbers[state.INVALID] += 1


@lean_kernel
def _first_of(ext: Extension, design: Policies, partition: int, heap: int) -> int:
    """The page of a heap whose key is least, or `NONE`; keys may have grown since they came into the heap."""
    while True:
        frame = root_of(ext, partition, heap)
        if frame == NONE:
            return NONE
        page = int(ext.frames[frame, state.PAGE])
        key = of_page(design[KEY_OF])(ext, page)
        if key <= ext.heaps[ext.frames[frame, state.PLACE], state.KEY]:
            return page
        change(ext, partition, heap, frame, key)


@lean_kernel
def least(ext: Extension, design: Policies, page: int) -> int:
    """The page that would be replaced if another one entered the partition of a page: what is the same on disk; or `NONE`."""
    return _first_of(ext, design, partition_of(ext, page), state.CLEAN)


@lean_kernel
def oldest_newer(ext: Extension, design: Policies, partition: int) -> int:
    """The page of a partition that is cleaned first, or `NONE`."""
    return _first_of(ext, design, partition, state.DIRTY)


@lean_kernel
def turn_of(ext: Extension, page: int) -> int:
    """Last turn of a page's frame where frames are taken in rotation, in turns of its partition."""
    partition, frame = ext.partitions[partition_of(ext, page)], ext.pages[page, state.FRAME] - 1
    laps = partition[state.LAPS] - 1 if frame >= partition[state.NEXT] else partition[state.LAPS]
    return int(laps * (partition[state.END] - partition[state.BEGIN]) + frame - partition[state.BEGIN])


@lean_kernel
def due(ext: Extension, design: Policies) -> int:
    """A page newer than on disk whose frame has its turn soon, where frames are taken in rotation; or `NONE`."""
    if not ext.numbers[state.ROTATES]:
        return NONE
    for number in range(ext.partitions.shape[0]):
        page, partition = oldest_newer(ext, design, number), ext.partitions[number]
        if page != NONE:
            key = ext.heaps[ext.frames[ext.pages[page, state.FRAME] - 1, state.PLACE], state.KEY]
            turns = partition[state.END] - partition[state.BEGIN]
            begins = (partition[state.LAPS] - 1) * turns + partition[state.NEXT] - partition[state.BEGIN]
            if key - begins < ext.numbers[state.AHEAD]:
                return page
    return NONE


@lean_kernel
def run_of(ext: Extension, page: int, begin: int, end: int, most: int) -> tuple[int, int]:
    """The pages beside a page, between bounds, that are cleaned with it: the first of all, and how many they are."""
    first, behind = page, page + 1
    while first > begin and behind - first < most and ext.pages[first - 1, state.STATUS] == state.VALID | state.NEWER:
        first -= 1
    while behind < end and behind - first < most and ext.pages[behind, state.STATUS] == state.VALID | state.NEWER:
        behind += 1
    return first, behind - first


@lean_kernel
def still_newer(ext: Extension, page: int, end: int) -> tuple[int, int]:
    """The next pages in a row, from a page on, that are newer than on disk yet: the first, and how many they are, perhaps none."""
    while page < end and not ext.pages[page, state.STATUS] & state.NEWER:
        page += 1
    behind = page
    while behind < end and ext.pages[behind, state.STATUS] & state.NEWER:
        behind += 1
    return page, behind - page


@lean_kernel
def _in_turn(ext: Extension, number: int) -> int:
    """The frame of a partition whose turn it is, free; or `NONE` if its page is newer than on disk.

    A frame that is held is passed over, and so is, once, one whose page was read again.
    """
    partition = ext.partitions[number]
    for _ in range(partition[state.END] - partition[state.BEGIN]):
        frame = partition[state.NEXT]
        page = ext.frames[frame, state.PAGE]
        passed = page > 0 and (ext.pages[page, state.STATUS] >> state.HOLD_SHIFT > 0 or ext.pages[page, state.MARKS] & state.READ_AGAIN > 0)
        if page > 0 and not passed:
            if ext.pages[page, state.STATUS] & state.NEWER:
                return NONE
            drop(ext, page)
        partition[state.NEXT] += 1
        if partition[state.NEXT] == partition[state.END]:
            partition[state.NEXT] = partition[state.BEGIN]
            partition[state.LAPS] += 1
        if not passed:
            return int(frame)
        ext.pages[page, state.MARKS] &= ~state.READ_AGAIN
    return NONE


@inlined_kernel
def _take(ext: Extension, design: Policies, page: int) -> int:
    partition = partition_of(ext, page)
    if ext.numbers[state.ROTATES]:
        return _in_turn(ext, partition)
    if ext.partitions[partition, state.FREE] == NONE:
        leaving = least(ext, design, page)
        if leaving == NONE:
            return NONE
        drop(ext, leaving)
    frame = int(ext.partitions[partition, state.FREE])
    ext.partitions[partition, state.FREE] = ext.frames[frame, state.PLACE]
    return frame


@inlined_kernel
def _give(ext: Extension, frame: int, page: int) -> None:
    ext.frames[frame, state.PAGE], ext.pages[page, state.FRAME] = page, frame + 1
    ext.numbers[state.USED] += 1
    if ext.numbers[state.USED] >= ext.numbers[state.FILL]:
        ext.numbers[state.FILL] = 0


@lean_kernel
def admit(ext: Extension, design: Policies, page: int, newer: int) -> int:
    """Take a frame for a page, which is held for its writing; returns the frame, or `NONE` if there is none to take.

    `newer` is 1 if the disk does not get this version as well.
    """
    status = ext.pages[page, state.STATUS]
    if status >> state.HOLD_SHIFT:
        return NONE
    if ext.pages[page, state.FRAME] and not ext.numbers[state.ROTATES]:
        frame = int(ext.pages[page, state.FRAME]) - 1
        remove(ext, partition_of(ext, page), _heap_of(ext, page), frame)
        if not status & state.VALID:
            ext.numbers[state.INVALID] -= 1
        note_cleaning(ext, page)
    else:
        drop(ext, page)
        frame = _take(ext, design, page)
        if frame == NONE:
            return NONE
        _give(ext, frame, page)
    ext.pages[page, state.STATUS] = state.VALID + state.ONE_HOLD
    ext.pages[page, state.MARKS] &= ~state.READ_AGAIN
    if newer:
        ext.pages[page, state.STATUS] += state.NEWER
        ext.numbers[state.NEWER_FRAMES] += 1
    return frame


@lean_kernel
def restore(ext: Extension, design: Policies, page: int, frame: int, newer: int) -> None:
    """Let a free frame hold a page, as after a restart; `newer` is 1 if the disk lacks that version.  `chain_free` must follow."""
    partition = partition_of(ext, page)
    _give(ext, frame, page)
    ext.pages[page, state.STATUS] = state.VALID + (state.NEWER if newer else 0)
    ext.numbers[state.NEWER_FRAMES] += newer
    insert(ext, partition, state.DIRTY if newer else state.CLEAN, frame, of_page(design[KEY_OF])(ext, page))


@lean_kernel
def chain_free(ext: Extension) -> None:
    """Chain the free frames of each partition anew, after `restore`."""
    for partition in range(ext.partitions.shape[0]):
        following = NONE
        for frame in range(ext.partitions[partition, state.END] - 1, ext.partitions[partition, state.BEGIN] - 1, -1):
            if ext.frames[frame, state.PAGE] == 0:
                ext.frames[frame, state.PLACE], following = following, frame
        ext.partitions[partition, state.FREE] = following


@inlined_kernel
def ask_on_evict(ext: Extension, design: Policies, page: int, flags: int) -> int:
    """The design's answer for a page that leaves memory."""
    return int(of_flags(design[EVICTED])(ext, page, flags))


@inlined_kernel
def apply_on_fetch(ext: Extension, design: Policies, page: int, flags: int) -> int:
    """The design's answer for a page that has been read from disk; a copy that the design does not want is given up."""
    actions = int(of_flags(design[FETCHED])(ext, page, flags))
    if actions & DROP:
        drop(ext, page)
    return actions


@inlined_kernel
def apply_on_serve(ext: Extension, design: Policies, page: int, flags: int) -> bool:
    """Do what the design wants with the copy from which a page has been read; whether memory's page is newer than on disk by that."""
    if not of_flags(design[SERVED])(ext, page, flags) & DROP:
        return False
    newer = ext.pages[page, state.STATUS] & state.NEWER > 0
    drop(ext, page)
    return bool(newer)


@inlined_kernel
def apply_on_modify(ext: Extension, design: Policies, page: int) -> None:
    """Do what the design wants with a copy that is not the newest any more; what it does not give up is not valid at least."""
    if ext.pages[page, state.STATUS] & state.VALID:
        if of_page(design[MODIFIED])(ext, page) & DROP:
            drop(ext, page)
        else:
            invalidate(ext, page)
