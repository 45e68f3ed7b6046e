"""What operations of the drive's event model share: channels, the link, the controller and the bus; and rules of the drive's state.

The rules are those that do little, as plain Python, which calls them several times as fast as their compiled forms.
"""

from collections.abc import Callable, Generator
from typing import Any

import simpy

from flashsim.core.host_specification import OPERATIONS, delay
from flashsim.core.kernel import in_python
from flashsim.core.units import NEVER
from flashsim.ssd import timing
from flashsim.ssd.state import flash_array, geometry, pacing, write_buffer

Steps = Generator[simpy.Event, Any, None]


class SharedServer(simpy.Resource):
    """A channel, the link or the controller: one user at a time, first come, first served; of a boundless one any number."""

    def __init__(self, env: simpy.Environment, boundless: bool = False) -> None:
        super().__init__(env, capacity=1)
        self.busy_ns, self._since, self.boundless = 0, NEVER, boundless

    def use(self, duration: int | Callable[[], int], number: int, note: Callable[[int], None] = lambda begin: None) -> Steps:
        """Wait for it, and hold it for `duration` ns, which may be decided when it is had; `note` takes when that began."""
        env = self._env
        if self.boundless:
            yield delay(env, duration() if callable(duration) else duration, OPERATIONS + number)
            return
        with self.request() as granted:
            yield granted
            self._since = int(env.now)
            yield delay(env, duration() if callable(duration) else duration, OPERATIONS + number)
            self.busy_ns += int(env.now) - self._since
            note(self._since)
            self._since = NEVER

    def busy_until(self, now: int) -> int:
        """Nanoseconds in which it was held, up to now."""
        return self.busy_ns + max(0, now - self._since)


block_of, die_of_block = in_python(geometry.block_of), in_python(geometry.die_of_block)
channel_of, pool_of_block = in_python(geometry.channel_of), in_python(geometry.pool_of_block)
is_one_program, empty_slots = in_python(flash_array.is_one_program), in_python(flash_array.empty_slots)
start_program, end_program = in_python(flash_array.start_program), in_python(flash_array.end_program)
find_entry, sector_mask = in_python(write_buffer.find_entry), in_python(write_buffer.sector_mask)
acknowledge = in_python(pacing.acknowledge)
needs_medium, work_left_at_stop = in_python(write_buffer.needs_medium), in_python(timing.work_left_at_stop)
