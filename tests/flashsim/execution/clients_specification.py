"""Closed clients before devices under one clock, told with SimPy: each client is a process."""

from collections.abc import Generator, Sequence

import numpy as np
import simpy

from flashsim.core.host_specification import delay
from flashsim.core.model import DeviceModel
from flashsim.core.request import Integers
from flashsim.execution.closed_clients import ClosedClients, page_reference, think_time
from flashsim.execution.specified_devices import CausalEnvironment, SpecifiedDevices

#: Events of clients come after those of devices at one nanosecond.
_CLIENTS = 1 << 32


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
        self.env, self.clients = CausalEnvironment(), clients
        self.numbers, self.pages = clients.tables(pages)[:2]
        self.devices = SpecifiedDevices(self.env, list(zip(devices, stripes, strict=True)))
        self.completed: list[tuple[int, int, int]] = []
        for client in range(clients.clients):
            self.env.process(self._client(client))

    def _client(self, client: int) -> Generator[simpy.Event, int, None]:
        reference = 0
        while True:
            yield delay(self.env, int(think_time(self.numbers, client, reference)), _CLIENTS + client)
            device, operation, offset = map(int, page_reference(self.numbers, self.pages, client, reference))
            yield self.devices.ask(device, operation, offset, self.clients.page_size)
            self.completed.append((int(self.env.now), device, client))
            reference += 1

    def run(self, completions: int) -> Integers:
        """The first completions, shape (n, 3): time, device and client."""
        while len(self.completed) < completions:
            self.env.step()
        return np.array(self.completed[:completions], np.int64)
