"""Steps of programs and erases, pulses and what is verified after each, at whose ends chips can interrupt them."""

from flashsim.core.draws import mixed
from flashsim.core.kernel import lean_kernel


@lean_kernel
def left_at_stop(number: int, most: int, step: int, long_step: int, long_chance: int) -> int:
    """What is left of an operation at the first end of a step at which that is `most` or less; 0 at its end.

    Counted from the end, each step is a long one with the chance given, in 2^-32, as a hash of the operation's number says; the first is
    what they leave.
    """
    if long_chance == 0:
        return max(0, most // step * step)
    left = place = 0
    while True:
        length = long_step if mixed(mixed(number) + place) < long_chance else step
        if left + length > most:
            return left
        left += length
        place += 1
