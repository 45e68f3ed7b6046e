"""Random: reclaim any block, whatever it holds."""

from flashsim.core.kernel import lean_kernel
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.pools import BLIND_ROUNDS, draw_closed

ROUNDS = BLIND_ROUNDS


@lean_kernel
def victim(flash: Flash, collector: int) -> int:
    return draw_closed(flash, collector)
