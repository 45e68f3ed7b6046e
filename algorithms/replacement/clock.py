"""CLOCK, or second chance: the first page on the way of a circling hand that was not referenced since the hand last passed.

Corbato (*A Paging Experiment with the Multics System*, MIT Project MAC, 1968).  A page has one bit, which a reference sets and the hand
clears.  Whether a page that enters has it set is left open: on hardware that sets it with the access that brought the page in it is, in
most simulators it is not, and so by default here (``entering``).
"""

from algorithms.replacement import _circle
from flashsim.core.kernel import lean_kernel
from flashsim.core.replacement import FIRST_PARAMETER, Parameter, PolicyPool, PoolState

TITLE = "CLOCK, second chance (Corbato, MIT Project MAC, 1968)"
PARAMETERS = {"entering": Parameter(0, 0, 1, "whether the bit of a page that enters is set")}
WORDS = _circle.FRAME_WORDS
setup, victim, forget = _circle.setup, _circle.victim, _circle.forget


class Plain(_circle.PlainClock):
    """Frames in a circle, a bit for each page, and a hand."""

    def __init__(self, pool: PolicyPool, entering: int) -> None:
        super().__init__(pool, 1, entering)


@lean_kernel
def hit(pool: PoolState, page: int) -> None:
    _circle.count_more(pool, page, 1)


@lean_kernel
def enter(pool: PoolState, page: int) -> None:
    _circle.take_frame(pool, page, pool.numbers[FIRST_PARAMETER])
