"""Who holds which latch, and which strand waits for what; when somebody goes on is the drivers' business."""

from collections import defaultdict, deque

from flashsim.core.errors import DeadlockError, InvalidParameterError
from flashsim.execution.requests import Latch, Strand


class Coordination:
    """The latches and the waits of strands that run together.

    `waits` names what each waiting strand waits for, the one that waits longest first.
    """

    def __init__(self) -> None:
        self.waits: dict[Strand, Strand | Latch] = {}
        self._holders: dict[Latch, Strand] = {}
        self._queues: defaultdict[Latch, deque[Strand]] = defaultdict(deque)

    def acquire(self, strand: Strand, latch: Latch) -> bool:
        """Whether a strand gets a latch at once; it waits otherwise."""
        if latch not in self._holders:
            self._holders[latch] = strand
            return True
        self._queues[latch].append(strand)
        self.waits[strand] = latch
        return False

    def release(self, strand: Strand, latch: Latch) -> Strand | None:
        """Hand a latch over to the strand that waits longest; returns it, if there is one."""
        if self._holders.get(latch) is not strand:
            raise InvalidParameterError("release", latch.name, f"{strand.name} does not hold this latch")
        del self._holders[latch]
        if not self._queues[latch]:
            return None
        after = self._holders[latch] = self._queues[latch].popleft()
        del self.waits[after]
        return after

    def wait(self, strand: Strand, other: Strand) -> bool:
        """Whether another strand has ended already; this one waits for it otherwise."""
        if not other.ended:
            self.waits[strand] = other
        return other.ended

    def end(self, strand: Strand) -> list[Strand]:
        """A strand has ended; returns those that waited for it."""
        for latch, holder in self._holders.items():
            if holder is strand:
                raise InvalidParameterError("latch", latch.name, f"{strand.name} ended while it held it")
        strand.ended = True
        waited = [other for other, awaited in self.waits.items() if awaited is strand]
        for other in waited:
            del self.waits[other]
        return waited

    def deadlock(self) -> DeadlockError:
        return DeadlockError(f"deadlock: {'; '.join(map(self._told, self.waits))}")

    def _told(self, strand: Strand) -> str:
        awaited = self.waits[strand]
        held = f"latch {awaited.name}, which {self._holders[awaited].name} holds" if isinstance(awaited, Latch) else awaited.name
        return f"{strand.name} waits for {held}"
