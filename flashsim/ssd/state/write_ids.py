"""Write ids are renumbered before they outgrow 32 bits: recovery needs their order, and four bytes a flash page are what they may take.

A write id is the number of a page written or trimmed (``control.sequence``) less ``control.id_base``.  What compares times, such as
``blocks.changed``, goes by the number itself, so that renumbering changes nothing that a drive does.
"""

import numpy as np

from flashsim.core.errors import CapacityError
from flashsim.core.kernel import lean_kernel
from flashsim.core.records import RecordArray
from flashsim.ssd.state.flash import Narrow

#: The highest write id.
LAST_WRITE_ID = 2**31 - 1


@lean_kernel
def ids_left(control: RecordArray) -> int:
    """How many pages can be written and trimmed before write ids must be renumbered."""
    return LAST_WRITE_ID - (control.sequence - control.id_base)


def renumber(control: RecordArray, spare: Narrow, trimmed: Narrow, count: int, oldest_in_flight: int | None) -> int:
    """Make room for `count` more write ids; by how much those in flight have become smaller.

    Ids that are older than all in flight become 1, 2, ... in the same order; the others keep their distances.
    """
    last = int(control.sequence - control.id_base)
    first_kept = last + 1 if oldest_in_flight is None else oldest_in_flight
    ids = np.unique(np.concatenate([array[(array > 0) & (array < first_kept)] for array in (spare, trimmed)]))
    shift = first_kept - 1 - len(ids)
    if last - shift + count > LAST_WRITE_ID:
        raise CapacityError(f"write ids: {last - shift} are in use, and {count} more do not fit into {LAST_WRITE_ID}")
    for array in (spare, trimmed):
        kept, older = array >= first_kept, (array > 0) & (array < first_kept)
        array[older] = np.searchsorted(ids, array[older]) + 1
        array[kept] -= shift
    control.id_base += shift
    return shift
