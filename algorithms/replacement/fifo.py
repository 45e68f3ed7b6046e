"""First in, first out: the page that has been in the pool longest leaves, however often it was referenced since.

Belady, Nelson and Shedler (*An Anomaly in Space-Time Characteristics of Certain Programs Running in a Paging Machine*, CACM 12(6), 1969)
show that a larger pool may miss more under it.
"""

from flashsim.core.kernel import lean_kernel
from flashsim.core.replacement import PlainQueue, PoolState, enter_ring, stay, take_oldest

TITLE = "FIFO, first in first out (Belady, Nelson and Shedler, CACM 12(6), 1969)"
Plain = PlainQueue
hit, enter = stay, enter_ring


@lean_kernel
def victim(pool: PoolState, page: int) -> int:
    return take_oldest(pool, 0)
