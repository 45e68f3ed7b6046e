"""What operations of the drive's event model share: channels, the link, the controller and the bus."""

from collections.abc import Callable, Generator
from typing import Any

import simpy

from flashsim.core.host_specification import OPERATIONS, delay
from flashsim.core.units import NEVER

Steps = Generator[simpy.Event, Any, None]


class SharedServer(simpy.Resource):
    """A channel, the link or the controller: one user at a time, first come, first served."""

    def __init__(self, env: simpy.Environment) -> None:
        super().__init__(env, capacity=1)
        self.busy_ns, self._since = 0, NEVER

    def use(self, duration: int | Callable[[], int], number: int) -> Steps:
        """Wait for it, and hold it for `duration` ns, which may be decided when it is had."""
        env = self._env
        with self.request() as granted:
            yield granted
            self._since = int(env.now)
            yield delay(env, duration() if callable(duration) else duration, OPERATIONS + number)
            self.busy_ns += int(env.now) - self._since
            self._since = NEVER

    def busy_until(self, now: int) -> int:
        """Nanoseconds in which it was held, up to now."""
        return self.busy_ns + max(0, now - self._since)
