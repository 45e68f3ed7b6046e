"""Random: reclaim any block, whatever it holds."""

from __future__ import annotations

from flashsim.core.kernel import lean_kernel
from flashsim.core.request import Integers
from flashsim.ssd.gc._draw import BLIND_ROUNDS, draw_closed

ROUNDS = BLIND_ROUNDS


@lean_kernel
def victim(control: Integers, pools: Integers, blocks: Integers, collector: int) -> int:
    """A closed block, each as likely."""
    return draw_closed(control, blocks, collector)
