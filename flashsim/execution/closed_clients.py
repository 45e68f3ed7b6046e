"""The smallest host side: closed clients, each of which thinks, asks for one random page, and waits for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import types

from flashsim.core.draws import mix_bits
from flashsim.core.errors import InvalidParameterError
from flashsim.core.groups import group_type
from flashsim.core.host import heap_pop, heap_push
from flashsim.core.kernel import kernel_of, lean_kernel
from flashsim.core.records import MATRIX, VECTOR
from flashsim.core.request import READ, SECTOR, WRITE, Integers
from flashsim.core.state_table import State, state_of
from flashsim.core.units import NEVER
from flashsim.execution.compiled_loop import ACT, HostSide, issue

_RANGE = 1 << 32
# Numbers of the clients: what they are, and how many of them think.
_THINK, _EXPONENTIAL, _SEED, _PAGE_SIZE, _WRITES, _THINKING = range(6)
# What is drawn for a client's page reference.
_DEVICE, _PAGE, _OPERATION, _PAUSE = range(4)


@dataclass(frozen=True)
class ClosedClients:
    """Clients that each reference random pages one after the other.

    Raises InvalidParameterError: a value out of bounds.
    """

    clients: int  #: How many.
    think: int = 0  #: Nanoseconds before each reference, or their mean.
    exponential: bool = False  #: Whether think times are exponentially distributed.
    page_size: int = 4096  #: Bytes.
    write_share: float = 0.0  #: Of the references, from 0 to 1.
    seed: int = 0  #: Random seed: each draw is a function of the client and the number of its reference.
    #: Processor cores by which clients go round, and each of which lets one client think at a time; 0: they all think at once.
    cores: int = 0

    def __post_init__(self) -> None:
        bounds = {"clients": self.clients >= 1, "think": 0 <= self.think < NEVER, "write_share": 0 <= self.write_share <= 1}
        bounds["cores"] = self.cores >= 0
        bounds["page_size"] = self.page_size >= SECTOR and self.page_size % SECTOR == 0
        for name, holds in bounds.items():
            if not holds:
                raise InvalidParameterError(name, getattr(self, name), "it is out of bounds")

    def tables(self, pages: Sequence[int], start: int = 0) -> ClientTables:
        """The clients as kernels take them, all of them thinking from `start` on; `pages` are those of each device."""
        if not pages or not all(1 <= count < _RANGE // 2 for count in pages):
            raise InvalidParameterError("pages", list(pages), f"a device has from 1 to {_RANGE // 2 - 1}")
        numbers = [self.think, self.exponential, self.seed, self.page_size, round(self.write_share * _RANGE), self.clients]
        counts = np.zeros((len(pages), 2), np.int64)
        tables = ClientTables(
            np.array(numbers, np.int64), np.array(pages, np.int64), np.zeros((self.clients, 2), np.int64),
            np.zeros(self.clients, np.int64), np.zeros(self.clients, np.int64), counts, np.zeros(self.cores, np.int64),
        )  # fmt: skip
        for client in range(self.clients):
            heap_push(tables.heap, client, int(thinks_until(tables, client, start)), client)
        return tables

    def side(self, pages: Sequence[int], start: int = 0) -> HostSide:
        """The clients as the host side of a loop that begins at `start`."""
        tables = self.tables(pages, start)
        return HostSide(act, (tables,), _STATE, int(tables.heap[0, 0]), self.clients, self.page_size)


class ClientTables(NamedTuple):
    """Tables of the clients' function."""

    numbers: Integers
    pages: Integers  #: Pages of each device.
    heap: Integers  #: A heap of the clients that think, shape (clients, 2): until when, and which.
    references: Integers  #: References of each client so far.
    issued: Integers  #: Time at which each client issued its last request.
    counts: Integers  #: Completed requests of each device, and the sum of their response times, shape (devices, 2).
    cores: Integers  #: Until when each core has clients that think.


_STATE = types.Tuple((group_type((VECTOR, VECTOR, MATRIX, VECTOR, VECTOR, MATRIX, VECTOR), ClientTables),))
_tables_of = state_of(_STATE)


@lean_kernel
def _draw(numbers: Integers, client: int, reference: int, what: int) -> int:
    """32 bits for one of the things that are drawn for a reference."""
    return mix_bits(mix_bits(mix_bits(int(numbers[_SEED])) + int(client)) + 4 * int(reference) + what)


@lean_kernel
def think_time(numbers: Integers, client: int, reference: int) -> int:
    if numbers[_EXPONENTIAL] == 0:
        return int(numbers[_THINK])
    return int(-math.log((_draw(numbers, client, reference, _PAUSE) + 1) / _RANGE) * numbers[_THINK])


@lean_kernel
def thinks_until(clients: ClientTables, client: int, now: int) -> int:
    """The end of a client's think time, for which it may have to wait for its core."""
    time = think_time(clients.numbers, client, clients.references[client])
    if clients.cores.shape[0] == 0:
        return now + time
    core = client % clients.cores.shape[0]
    clients.cores[core] = max(now, clients.cores[core]) + time
    return int(clients.cores[core])


@lean_kernel
def page_reference(numbers: Integers, pages: Integers, client: int, reference: int) -> tuple[int, int, int]:
    """Device, operation and offset of a client's reference."""
    device = (_draw(numbers, client, reference, _DEVICE) * pages.shape[0]) >> 32
    page = (_draw(numbers, client, reference, _PAGE) * int(pages[device])) >> 32
    operation = WRITE if _draw(numbers, client, reference, _OPERATION) < numbers[_WRITES] else READ
    return device, operation, page * numbers[_PAGE_SIZE]


@kernel_of(ACT)
def act(state: State, outbox: Integers, now: int, device: int, tag: int) -> int:
    """A client's request completed, and it thinks; or the one that thinks no longer issues the next."""
    clients = _tables_of(state)[0]
    numbers = clients.numbers
    if device >= 0:
        clients.counts[device, 0] += 1
        clients.counts[device, 1] += now - clients.issued[tag]
        numbers[_THINKING] = heap_push(clients.heap, numbers[_THINKING], thinks_until(clients, tag, now), tag)
    else:
        client = clients.heap[0, 1]
        numbers[_THINKING] = heap_pop(clients.heap, numbers[_THINKING])
        to, operation, offset = page_reference(numbers, clients.pages, client, clients.references[client])
        clients.references[client] += 1
        clients.issued[client] = now
        issue(outbox, to, operation, offset, numbers[_PAGE_SIZE], client)
    return int(clients.heap[0, 0]) if numbers[_THINKING] > 0 else NEVER
