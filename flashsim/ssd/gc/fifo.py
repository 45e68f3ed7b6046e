"""First in, first out: reclaim the block that was closed longest ago, whatever it holds (also called LRU or age-threshold cleaning)."""

from flashsim.core.kernel import lean_kernel
from flashsim.ssd.state.flash import Flash

#: Cold data fill whole blocks, which are copied in turn.  Under uniform writes with 32 pages a block and 7 % over-provisioning one victim
#: in eighty is wholly valid.
ROUNDS = 8


@lean_kernel
def victim(flash: Flash, collector: int) -> int:
    """The closed block that comes first in the order of closing."""
    flash.control.gc_steps += 1
    return flash.pools[collector].oldest
