"""Devices under one SimPy clock, which processes ask and wait for; the counterpart of `flashsim.execution.compiled_loop`.

What falls on one nanosecond happens in this order: devices, drive by drive; those who waited for what completed, in the order in which it
did, and whoever they wake; whatever else is due, by its own priority below `SENDING`; and last what was asked for meanwhile arrives.
"""

from collections.abc import Callable, Sequence
from typing import Any

import simpy

from flashsim.core.host_queue import one_command_each
from flashsim.core.host_specification import delay
from flashsim.core.model import DeviceModel
from flashsim.core.request import make_requests
from flashsim.core.units import NEVER

#: Priorities of events at one nanosecond, after SimPy's own two: drives in order, completions, and requests that are sent.
_DRIVES, _COMPLETIONS, SENDING = 2, 1 << 20, 1 << 60


class CausalEnvironment(simpy.Environment):
    """A clock that knows after which request's completion it is that something happens: what an event lets happen later has its cause."""

    def __init__(self) -> None:
        super().__init__()
        #: The request, -1 for none.
        self.cause = -1
        self._causes: dict[simpy.Event, int] = {}

    def schedule(self, event: simpy.Event, *args: Any, **kwargs: Any) -> None:
        """See `simpy.Environment.schedule`."""
        self._causes[event] = self.cause
        super().schedule(event, *args, **kwargs)

    def step(self) -> None:
        """See `simpy.Environment.step`."""
        if self._queue:
            self.cause = self._causes.pop(self._queue[0][-1])
        super().step()


class SpecifiedDevices:
    """Devices, each of one drive or of several that are striped.

    Parameters
    ----------
    env
        The clock.
    devices
        Of each the models of its drives, and bytes of a stripe.
    processor
        Which of them is one, whose requests are no causes: what it worked for goes on being one.
    """

    def __init__(self, env: CausalEnvironment, devices: Sequence[tuple[Sequence[DeviceModel], int]], processor: int = -1) -> None:
        self.env, self.devices, self._processor = env, devices, processor
        #: Requests of each device that were asked for and have not completed.
        self.pending = [0] * len(devices)
        #: What was asked for: when, of which device, operation, offset and length; after which of it; and what completed: when, at which
        #: device, its place in what was asked for.
        self.asked: list[tuple[int, int, int, int, int]] = []
        self.causes: list[int] = []
        self.completed: list[tuple[int, int, int]] = []
        self._drives = [(drive, number) for number, (drives, _) in enumerate(devices) for drive in drives]
        self._first = [sum(len(drives) for drives, _ in devices[:number]) for number in range(len(devices))]
        self._due = [NEVER] * len(self._drives)
        self._events: dict[int, simpy.Event] = {}
        self._sent = 0
        self._finished: list[int] = []

    def ask(self, device: int, operation: int, offset: int, length: int, event: simpy.Event | None = None) -> simpy.Event:
        """Ask a device for something; the event, a new one if none is given, happens when it is done."""
        if self._sent == len(self.asked):
            self._then(0, SENDING, self._send)
        event = self._events[len(self.asked)] = event or self.env.event()
        assert event.callbacks is not None
        event.callbacks.append(lambda _: self._less(device))
        self.asked.append((int(self.env.now), device, operation, offset, length))
        self.causes.append(self.env.cause)
        self.pending[device] += 1
        return event

    def _less(self, device: int) -> None:
        self.pending[device] -= 1

    def _then(self, duration: int, priority: int, call: Callable[[], None]) -> None:
        event = delay(self.env, duration, priority)
        assert event.callbacks is not None
        event.callbacks.append(lambda _: call())

    def _send(self) -> None:
        for tag in range(self._sent, len(self.asked)):
            _, device, operation, offset, length = self.asked[tag]
            drives, stripe = self.devices[device]
            number, within = divmod(offset, stripe)
            requests = make_requests(operation, number // len(drives) * stripe + within, length)
            requests["tag"] = tag
            drive = number % len(drives)
            drives[drive].submit(requests, one_command_each(requests), int(self.env.now))
            self._wait(self._first[device] + drive)
        self._sent = len(self.asked)

    def _wait(self, drive: int) -> None:
        self._due[drive] = self._drives[drive][0].next_event
        if self._due[drive] < NEVER:
            self._then(self._due[drive] - int(self.env.now), _DRIVES + drive, lambda: self._step(drive))

    def _step(self, drive: int) -> None:
        """Let happen what is due, unless something came before what this waited for."""
        if self._due[drive] != self.env.now:
            return
        model = self._drives[drive][0]
        done = model.advance(int(self.env.now), every=True)["tag"].tolist()
        if done and not self._finished:
            self._then(0, _COMPLETIONS, self._tell)
        self._finished += done
        self._wait(drive)

    def _tell(self) -> None:
        finished, self._finished = self._finished, []
        for tag in finished:
            device = self.asked[tag][1]
            self.completed.append((int(self.env.now), device, tag))
            self.env.cause = self.causes[tag] if device == self._processor else tag
            self._events.pop(tag).succeed()
