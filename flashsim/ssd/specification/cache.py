"""The SLC cache of the drive's event model while no command is in the drive: when it is folded.

It is folded as the clock goes on: for a time, or until what comes next.  `flashsim.ssd.state.collection` says what then moves.
"""

from flashsim.core.host_specification import ARRIVALS, HostRequest
from flashsim.core.request import WRITE
from flashsim.core.units import NEVER
from flashsim.ssd.specification.parts import Command, DriveOfParts


class SpecifiedCache:
    """The SLC cache of one drive."""

    def __init__(self, drive: DriveOfParts) -> None:
        self.drive = drive
        self.idle_since = -1  # with all operations ended, and a block to fold
        self.folds_on = False  # whether it has folded since the last command
        self.folding: Command | None = None

    def folds_at(self) -> int:
        """Time of the next fold if no command comes: `slc_idle` after the last, then one after the other; NEVER if none are."""
        drive, state, idle = self.drive, self.drive.state, self.drive.parameters.slc_idle
        if not idle:
            return NEVER
        queue, now = drive.env._queue, int(drive.env.now)
        follows = bool(queue) and queue[0][0] == now and queue[0][1] < ARRIVALS
        dies_work = any(die.queue or die.reads or die.at_work or die.cached or die.suspended for die in drive.dies)
        busy = self.folding or dies_work or any(waiting.in_flight for waiting in drive.host.queues)
        if busy or follows or not (state.pools.slc_oldest >= 0).any() or state.control.read_only:
            self.idle_since = -1
            return NEVER
        if self.idle_since < 0:
            self.idle_since = now - idle * self.folds_on
        return self.idle_since + idle

    def fold(self) -> None:
        """Let every plane fold its oldest block, by a command of no host."""
        drive = self.drive
        command = self.folding = drive.command_of(HostRequest(drive.host.queues[0], -1, 0, WRITE, 0, 0, []))
        self.folds_on = True
        for pool in range(drive.parameters.pools):
            operations = drive.add(command, drive.state.plan_folding(pool), 0)
            for operation in operations[-1:]:
                operation.part = True
                command.pages_left += 1
        for operation in command.operations:
            operation.end_wait()
