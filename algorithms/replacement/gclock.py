"""GCLOCK: CLOCK with a count instead of a bit, so that pages that are referenced often stay for several turns of the hand.

Smith (*Sequentiality and Prefetching in Database Systems*, ACM TODS 3(3), 1978).  What a reference does to the count differs: it raises it,
or sets it to a weight by the type of the page (both in Effelsberg and Haerder, *Principles of Database Buffer Management*, ACM TODS 9(4),
1984).  Here it raises it by one up to a limit, as PostgreSQL does, whose limit of 5 and count of 1 for a page that enters are the defaults.
"""

from algorithms.replacement import _circle
from flashsim.core.kernel import lean_kernel
from flashsim.core.replacement import FIRST_PARAMETER, Parameter, PoolState

TITLE = "GCLOCK, generalized CLOCK (Smith, ACM TODS 3(3), 1978)"
PARAMETERS = {
    "limit": Parameter(5, 1, 255, "what a page's count rises to at most"),
    "entering": Parameter(1, 0, 255, "the count of a page that enters, if it is not above the limit"),
}
WORDS = _circle.FRAME_WORDS
Plain = _circle.PlainClock
setup, victim, forget = _circle.setup, _circle.victim, _circle.forget


@lean_kernel
def hit(pool: PoolState, page: int) -> None:
    _circle.count_more(pool, page, pool.numbers[FIRST_PARAMETER])


@lean_kernel
def enter(pool: PoolState, page: int) -> None:
    _circle.take_frame(pool, page, min(pool.numbers[FIRST_PARAMETER], pool.numbers[FIRST_PARAMETER + 1]))
