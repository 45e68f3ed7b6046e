"""Temperature-aware caching: a page goes to the SSD right after it has come from disk, if its extent is warmer than the coldest page there.

The temperature of an extent grows with each miss in memory: by one, or by what the miss costs more without the SSD, if `random` and
`sequential` are given as such times.  All are halved from time to time.  A copy whose page is modified stays, not valid, until its frame is
replaced or the page is written to disk, and to the SSD once more.  A page that is created in memory never reaches the SSD.

A page that is read to be written may be modified before its copy could be written, and is then not cached: how likely that is, `lost`, is
fitted (100 % reproduces the gain over no SSD that Do, 2012, 3.4.2 reports).  How often temperatures are halved is not published.

Source: Canim et al., "SSD bufferpool extensions for database systems", PVLDB 3(2), 2010 (extents of 32 pages, aging, and that pages of cold
ones are kept out, from its abstract), and the claims of US patent 8,161,241 (temperatures are sums of costs, discounted periodically); all
else as Do, 2012, 3.2.4, 3.4.2 and 3.5 tells it.  The patent also groups pages of like temperature into blocks that overwrite cooler ones:
this does not, nor does Do.  With several partitions the coldest page is that of the page's own.
"""

from collections.abc import Mapping

from flashsim.core.draws import mix_bits
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.replacement import FIRST_PAGE, NONE, Parameter
from flashsim.storage.extension import state
from flashsim.storage.extension.design import ALONGSIDE, DIRTY_PAGE, FOR_UPDATE, INVALIDATE, SEQUENTIAL, TO_DISK, TO_SSD
from flashsim.storage.extension.manager import change, partition_of, root_of

TITLE = "TAC, temperature-aware caching"
PARAMETERS = {
    "extent": Parameter(32, 1, 1 << 20, "pages of an extent"),
    "aging": Parameter(0, 0, 1 << 60, "misses after which all temperatures are halved, 0 for never"),
    "random": Parameter(1, 1, 1_000_000, "what a random miss adds to a temperature"),
    "sequential": Parameter(1, 0, 1_000_000, "what a miss of a scan adds"),
    "lost": Parameter(100, 0, 100, "probability in percent that a page read to be written is modified before its copy is written"),
}
_EXTENT, _AGING, _RANDOM, _SEQUENTIAL, _LOST = range(state.FIRST_PARAMETER, state.FIRST_PARAMETER + 5)
_SINCE = state.OWN_NUMBER


def WORDS(parameters: Mapping[str, int], pages: int) -> int:  # noqa: N802
    return -(-pages // parameters["extent"])


@lean_kernel
def key(ext: state.Extension, page: int) -> int:
    return int(ext.words[(page - FIRST_PAGE) // ext.numbers[_EXTENT]])


@inlined_kernel
def _warm(ext: state.Extension, page: int, flags: int) -> None:
    if flags & ALONGSIDE:
        return
    ext.words[(page - FIRST_PAGE) // ext.numbers[_EXTENT]] += ext.numbers[_SEQUENTIAL if flags & SEQUENTIAL else _RANDOM]
    ext.numbers[_SINCE] += 1
    if ext.numbers[_SINCE] == ext.numbers[_AGING]:
        ext.numbers[_SINCE] = 0
        _age(ext)


@lean_kernel
def _age(ext: state.Extension) -> None:
    """Halve all temperatures, and the keys in heaps with them: an order stands when all that it orders is halved."""
    for extent in range(len(ext.words)):
        ext.words[extent] >>= 1
    for place in range(len(ext.heaps)):
        ext.heaps[place, state.KEY] >>= 1


@lean_kernel
def _coldest(ext: state.Extension, partition: int) -> int:
    """The temperature of the page that would be replaced; none is as warm if there is no such page."""
    while True:
        frame = root_of(ext, partition, state.CLEAN)
        if frame == NONE:
            return 1 << 62
        temperature = key(ext, int(ext.frames[frame, state.PAGE]))
        if temperature <= ext.heaps[ext.frames[frame, state.PLACE], state.KEY]:
            return temperature
        change(ext, partition, state.CLEAN, frame, temperature)


@lean_kernel
def on_evict(ext: state.Extension, page: int, flags: int) -> int:
    """Write pages that the disk does not have to the disk, and over a copy on the SSD that is not valid any more."""
    if not flags & DIRTY_PAGE:
        return 0
    return TO_DISK | (TO_SSD if ext.pages[page, state.FRAME] and not ext.pages[page, state.STATUS] & state.VALID else 0)


@lean_kernel
def on_fetch(ext: state.Extension, page: int, flags: int) -> int:
    """Warmer than the coldest page, or while there is room."""
    _warm(ext, page, flags)
    if flags & FOR_UPDATE and mix_bits(int(page + ext.numbers[state.MISSES])) * 100 >> 32 < ext.numbers[_LOST]:
        return 0
    partition = partition_of(ext, page)
    if ext.numbers[state.FILL] > 0 or ext.pages[page, state.FRAME] or ext.partitions[partition, state.FREE] != NONE:
        return TO_SSD
    return TO_SSD if key(ext, page) > _coldest(ext, partition) else 0


@lean_kernel
def on_serve(ext: state.Extension, page: int, flags: int) -> int:
    _warm(ext, page, flags)
    return 0


@lean_kernel
def on_modify(ext: state.Extension, page: int) -> int:
    return INVALIDATE
