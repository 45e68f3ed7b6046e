"""Command slots of a device: how many units of commands it takes at once, and whose command is next."""

from typing import NamedTuple

from flashsim.core.request import WRITE


class Slots(NamedTuple):
    """What commands hold in a device, from their dispatch until they complete: `number` in all, 0 for no bound, of `size` bytes each."""

    number: int = 0
    size: int = 1
    by_arrival: bool = False  #: Whether the queues' oldest command is next, and not that of the queue whose turn it is.

    def taken_by(self, operation: int, length: int) -> int:
        """Slots of a command of so many bytes, which only reads and writes move: one at least, and all at most."""
        return min(self.number, max(1, -(-length // self.size) if operation <= WRITE else 1))


NO_BOUND = Slots()
