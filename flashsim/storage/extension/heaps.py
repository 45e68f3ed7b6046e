"""The two heaps of a partition's frames, the least key on top; a frame is found in them, and leaves, in logarithmic time."""

from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.replacement import NONE
from flashsim.storage.extension.state import BEGIN, CLEAN, END, ENTRY, KEY, PLACE, Extension


@inlined_kernel
def _ends(ext: Extension, partition: int, heap: int) -> tuple[int, int]:
    """Where a heap's root stands, and in which direction it grows."""
    return (int(ext.partitions[partition, BEGIN]), 1) if heap == CLEAN else (int(ext.partitions[partition, END]) - 1, -1)


@inlined_kernel
def _set(ext: Extension, at: int, key: int, frame: int) -> None:
    ext.heaps[at, KEY], ext.heaps[at, ENTRY] = key, frame
    ext.frames[frame, PLACE] = at


@lean_kernel
def _sift(ext: Extension, partition: int, heap: int, place: int, key: int, frame: int) -> None:
    root, step = _ends(ext, partition, heap)
    size = ext.partitions[partition, heap]
    while place > 0 and ext.heaps[root + step * ((place - 1) // 2), KEY] > key:
        above = root + step * ((place - 1) // 2)
        _set(ext, root + step * place, ext.heaps[above, KEY], ext.heaps[above, ENTRY])
        place = (place - 1) // 2
    while True:
        below = 2 * place + 1
        if below + 1 < size and ext.heaps[root + step * (below + 1), KEY] < ext.heaps[root + step * below, KEY]:
            below += 1
        if below >= size or ext.heaps[root + step * below, KEY] >= key:
            break
        _set(ext, root + step * place, ext.heaps[root + step * below, KEY], ext.heaps[root + step * below, ENTRY])
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
    place = (int(ext.frames[frame, PLACE]) - root) * step
    ext.partitions[partition, heap] -= 1
    last = root + step * int(ext.partitions[partition, heap])
    if root + step * place != last:
        _sift(ext, partition, heap, place, ext.heaps[last, KEY], ext.heaps[last, ENTRY])


@inlined_kernel
def change(ext: Extension, partition: int, heap: int, frame: int, key: int) -> None:
    root, step = _ends(ext, partition, heap)
    _sift(ext, partition, heap, (int(ext.frames[frame, PLACE]) - root) * step, key, frame)


@inlined_kernel
def root_of(ext: Extension, partition: int, heap: int) -> int:
    """The frame with the least key, or `NONE`."""
    if ext.partitions[partition, heap] == 0:
        return NONE
    root, _ = _ends(ext, partition, heap)
    return int(ext.heaps[root, ENTRY])
