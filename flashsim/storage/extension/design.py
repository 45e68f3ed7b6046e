"""The contract of a design: what a database does with an SSD that extends its memory pool.

A design is five kernels over `flashsim.storage.extension.state.Extension`; all but `key` answer with actions, bits that may be combined::

    on_evict(ext, page, flags)   a page leaves memory: `TO_DISK`, `TO_SSD`; a page that is newer than on disk must go somewhere
    on_fetch(ext, page, flags)   a page has been read from disk: `TO_SSD`, while it stays in memory, or `DROP`, if a copy is given up
    on_serve(ext, page, flags)   a page has been read from the SSD: `DROP`, if its copy is given up; memory's page is then the newest
    on_modify(ext, page)         memory's page becomes newer than its copy on the SSD: `DROP` or `INVALIDATE` (its frame stays taken)
    key(ext, page)               the page whose key is least is replaced, or cleaned, first; a page's key never falls

`flags` say what is known of the page (`DIRTY_PAGE` and so on).  Frames of a design that rotates are taken one after the other; its keys
come from `flashsim.storage.extension.manager.turn_of`.
"""

from numba import types

from flashsim.core.policies import function_at
from flashsim.storage.extension.state import EXTENSION

TO_DISK, TO_SSD, DROP, INVALIDATE = 1, 2, 4, 8
#: Flags: the page is newer than on disk and on the SSD, it was read ahead by a scan, it was read to be written, it came along with another
#: page that was missed, and it stays in memory since a checkpoint writes it.
DIRTY_PAGE, SEQUENTIAL, FOR_UPDATE, ALONGSIDE, CHECKPOINTED = 1, 2, 4, 8, 16

#: Signatures of a design's functions, and where each stands among their addresses.
EVICTED, FETCHED, SERVED, MODIFIED, KEY_OF = range(5)
_OF_FLAGS = types.FunctionType(types.int64(EXTENSION, types.int64, types.int64))
_OF_PAGE = types.FunctionType(types.int64(EXTENSION, types.int64))
DESIGN_KERNELS = {"on_evict": _OF_FLAGS, "on_fetch": _OF_FLAGS, "on_serve": _OF_FLAGS, "on_modify": _OF_PAGE, "key": _OF_PAGE}
#: ``of_flags(design[EVICTED])(ext, page, flags)`` in a kernel, and so on.
of_flags, of_page = function_at(_OF_FLAGS), function_at(_OF_PAGE)
