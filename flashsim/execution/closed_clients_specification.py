"""Closed clients before devices under one clock, told with SimPy: each client is a process, and each device is one that others wake."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np
import simpy

from flashsim.core.host_queue import one_command_each
from flashsim.core.host_specification import delay
from flashsim.core.model import DeviceModel
from flashsim.core.request import Integers, make_requests
from flashsim.core.units import NEVER
from flashsim.execution.closed_clients import ClosedClients, page_reference, think_time

#: Priorities of events at one nanosecond, after SimPy's own two: the devices in order, then the clients.
_DEVICES, _CLIENTS = 2, 1 << 32


class SpecifiedDrive:
    """A device that takes a step whenever something happens in it."""

    def __init__(self, env: simpy.Environment, model: DeviceModel, number: int, done: dict[int, simpy.Event]) -> None:
        self.env, self.model, self.number, self.done = env, model, number, done
        self.due = NEVER

    def request(self, client: int, operation: int, offset: int, length: int) -> None:
        """A client's request arrives."""
        requests = make_requests(operation, offset, length)
        requests["tag"] = client
        self.model.submit(requests, one_command_each(requests), int(self.env.now))
        self.wait()

    def wait(self) -> None:
        """Take the next step when something happens next."""
        self.due = self.model.next_event
        if self.due < NEVER:
            event = delay(self.env, self.due - int(self.env.now), _DEVICES + self.number)
            assert event.callbacks is not None
            event.callbacks.append(lambda _: self.step())

    def step(self) -> None:
        """Let happen what is due, and wake the clients whose requests completed."""
        if self.due != self.env.now:  # something came before what this step waited for
            return
        for client in self.model.advance(int(self.env.now), every=True)["tag"].tolist():
            self.done[client].succeed()
        self.wait()


class SpecifiedSystem:
    """Clients and devices.

    Parameters
    ----------
    devices
        The models of each device's drives; more than one are striped.
    stripes
        Bytes of a stripe of each device.
    clients
        The clients.
    pages
        Pages of each device.
    """

    def __init__(
        self, devices: Sequence[Sequence[DeviceModel]], stripes: Sequence[int], clients: ClosedClients, pages: Sequence[int]
    ) -> None:
        self.env, self.stripes, self.clients = simpy.Environment(), stripes, clients
        self.numbers, self.pages = clients.tables(pages)[:2]
        self.completed: list[tuple[int, int, int]] = []
        self._done: dict[int, simpy.Event] = {}
        numbers = iter(range(sum(map(len, devices))))
        self.drives = [[SpecifiedDrive(self.env, model, next(numbers), self._done) for model in models] for models in devices]
        for client in range(clients.clients):
            self.env.process(self._client(client))

    def _client(self, client: int) -> Generator[simpy.Event, int, None]:
        reference = 0
        while True:
            yield delay(self.env, int(think_time(self.numbers, client, reference)), _CLIENTS + client)
            device, operation, offset = map(int, page_reference(self.numbers, self.pages, client, reference))
            stripe, drives = self.stripes[device], self.drives[device]
            number, within = divmod(offset, stripe)
            self._done[client] = self.env.event()
            drives[number % len(drives)].request(client, operation, number // len(drives) * stripe + within, self.clients.page_size)
            yield self._done[client]
            self.completed.append((int(self.env.now), device, client))
            reference += 1

    def run(self, completions: int) -> Integers:
        """The first completions, shape (n, 3): time, device and client."""
        while len(self.completed) < completions:
            self.env.step()
        return np.array(self.completed[:completions], np.int64)
