"""Pending events of the engine, in the order of time and key: lanes of those that end steps of one kind, and a heap.

Steps of one kind take equally long, or nearly so: their events come in order, and stand in a ring, the lane, in which they are put in and
taken out without a search.  One that comes out of order goes to the heap.  The fronts, of each lane and of the heap, are next to each other
in memory: the earliest of them is the next event.
"""

from typing import NamedTuple

import numpy as np

from flashsim.core.groups import group_type
from flashsim.core.host import heap_pop, heap_push
from flashsim.core.kernel import inlined_kernel
from flashsim.core.records import MATRIX, RecordArray, empty_table, record_dtype, table_type
from flashsim.core.request import Integers
from flashsim.core.units import NEVER

#: A lane: the place of its front in the ring, and the events that stand there; of the heap `count` alone counts.
LANE = record_dtype(int64="first count")
#: Lanes by the phase that ends, those of erases, of moves on a channel, and of programs whose transfer has no event; behind them the heap.
_ERASES, _MOVES, UNBROKEN, HEAP = 6, 7, 8, 9


class Agenda(NamedTuple):
    """Pending events: a time and a key each."""

    #: LANE, of each lane and of the heap.
    lanes: RecordArray
    #: The first event of each lane and of the heap, shape (10, 2); NEVER where there is none.
    fronts: Integers
    #: The rings of all lanes, shape (9 * places, 2), where `places` is a power of two.
    rings: Integers
    #: A heap, shape (places, 2).
    heap: Integers


AGENDA = group_type((table_type(LANE), MATRIX, MATRIX, MATRIX), Agenda)


def empty_agenda(most: int) -> Agenda:
    """No events, and room for so many."""
    places = 1 << (most - 1).bit_length()
    rings, heap = (np.empty((rows, 2), np.int64) for rows in (HEAP * places, places))
    return Agenda(empty_table(HEAP + 1, LANE), np.full((HEAP + 1, 2), NEVER), rings, heap)


def with_more_places(agenda: Agenda, most: int) -> Agenda:
    """An agenda with the same events and room for `most`."""
    larger = empty_agenda(most)
    places, more = len(agenda.heap), len(larger.heap)
    for at, lane in enumerate(agenda.lanes[:HEAP]):
        events = at * places + (int(lane.first) + np.arange(lane.count)) % places
        larger.rings[at * more : at * more + lane.count] = agenda.rings[events]
    larger.heap[:places], larger.fronts[:] = agenda.heap, agenda.fronts
    larger.lanes.count[:] = agenda.lanes.count
    return larger


@inlined_kernel
def lane_of(phase: int, erases: bool, moves: bool, in_cells: int, on_channel: int) -> int:
    """The lane of an event that ends a phase of an operation; stops, behind the phases that have lanes, use that of the last."""
    if erases and phase == in_cells:
        return _ERASES
    return _MOVES if moves and phase == on_channel else min(phase, _ERASES - 1)


@inlined_kernel
def put(agenda: Agenda, at: int, time: int, key: int) -> None:
    """Enter an event: last in its lane, or in the heap if it comes before the last one there."""
    lane, places = agenda.lanes[at], agenda.heap.shape[0]
    if lane.count == 0:
        agenda.fronts[at, 0], agenda.fronts[at, 1] = time, key
    else:
        last = at * places + ((lane.first + lane.count - 1) & (places - 1))
        if time < agenda.rings[last, 0] or (time == agenda.rings[last, 0] and key < agenda.rings[last, 1]):
            agenda.lanes[HEAP].count = heap_push(agenda.heap, agenda.lanes[HEAP].count, time, key)
            agenda.fronts[HEAP, 0], agenda.fronts[HEAP, 1] = agenda.heap[0, 0], agenda.heap[0, 1]
            return
    place = at * places + ((lane.first + lane.count) & (places - 1))
    agenda.rings[place, 0], agenda.rings[place, 1] = time, key
    lane.count += 1


@inlined_kernel
def earliest(agenda: Agenda) -> int:
    """The lane, or HEAP, whose front is the next event; any if there is no event."""
    at, time, key = 0, agenda.fronts[0, 0], agenda.fronts[0, 1]
    for other in range(1, HEAP + 1):
        comes, number = agenda.fronts[other, 0], agenda.fronts[other, 1]
        if comes < time or (comes == time and number < key):
            at, time, key = other, comes, number
    return at


@inlined_kernel
def take(agenda: Agenda, at: int) -> None:
    """Take the front of a lane, or of the heap, away."""
    lane, places = agenda.lanes[at], agenda.heap.shape[0]
    if at == HEAP:
        lane.count = heap_pop(agenda.heap, lane.count)
        following = 0
    else:
        lane.first = (lane.first + 1) & (places - 1)
        lane.count -= 1
        following = at * places + lane.first
    if lane.count == 0:
        agenda.fronts[at, 0] = NEVER
    elif at == HEAP:
        agenda.fronts[at, 0], agenda.fronts[at, 1] = agenda.heap[0, 0], agenda.heap[0, 1]
    else:
        agenda.fronts[at, 0], agenda.fronts[at, 1] = agenda.rings[following, 0], agenda.rings[following, 1]
