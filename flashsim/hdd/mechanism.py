"""The drive's mechanism as a SimPy process: an arm that moves, platters that turn, and sectors that pass, track by track."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import simpy

from flashsim.core.host_specification import OPERATIONS, delay
from flashsim.core.request import Integers
from flashsim.hdd.geometry import Geometry, Place
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.rotation import slot_start, slots_ended

Steps = Generator[simpy.Event, Any, None]

#: Of the events of one nanosecond the mechanism's come last: what the controller decides then still counts.
MECHANISM = OPERATIONS + 1


class Mechanism:
    """Transfers consecutive sectors from `next` up to `limit`, then rests; the controller may move the limit on or begin elsewhere."""

    def __init__(self, env: simpy.Environment, parameters: HddParameters, seeks: Integers) -> None:
        self.env = env
        self.parameters = parameters
        self.geometry = Geometry(parameters)
        self.seeks = seeks
        self.next = self.limit = 0
        self.writing = False
        self.seek_count = self.seek_time = self.seek_cylinders = self.wait_count = self.wait_time = 0
        self._arm = self.geometry.locate(0)
        self._held = (0, 0)  # from the first sector on, what is to be written is there at the second, a time
        self._passing = (0, 0, 0)  # the sectors (first, after the last) that pass since a time
        self._passes = env.event()
        self._work: simpy.Process | None = None

    @property
    def resting(self) -> bool:
        """Whether all sectors up to the limit have been transferred."""
        return self.position == self.limit

    @property
    def position(self) -> int:
        """The first sector that has not been transferred; one whose transfer ends now has been."""
        first, end, since = self._passing
        if first == end:
            return self.next
        place = self.geometry.locate(first)
        angle = slot_start(place.slot, place.per_track, self.parameters.rotation)
        slots = slots_ended(angle + int(self.env.now) - since, place.per_track, self.parameters.rotation)
        return min(end, first + slots - place.slot)

    def begin(self, first: int, limit: int, writing: bool, ready: int) -> None:
        """Leave what is being done, and transfer from `first` up to `limit`; what is to be written is there at `ready`."""
        position = self.position
        if self.limit > 0:  # where the next sector is; at rest still where the last one was
            self._arm = self.geometry.locate(position if position < self.limit else position - 1)
        if self._work is not None and self._work.is_alive:
            self._work.interrupt()
        self._passing = (0, 0, 0)
        self.next, self.limit, self.writing = first, limit, writing
        self._held = (first, ready)
        self._work = self.env.process(self._transfer(first))

    def extend(self, limit: int, ready: int) -> None:
        """Go on up to `limit`; what is to be written beyond the old limit is there at `ready`."""
        if limit <= self.limit:
            return
        self._held = (self.limit, ready)
        self.limit = limit
        assert self._work is not None
        if not self._work.is_alive:
            self._work = self.env.process(self._transfer(-1))

    def passed(self, sector: int) -> Steps:
        """Wait until a sector has been transferred."""
        while self.position <= sector:
            first, end, since = self._passing
            if first <= sector < end:
                yield delay(self.env, since + self._duration(first, sector + 1) - int(self.env.now), OPERATIONS)
            else:
                yield self._passes

    def _transfer(self, new: int) -> Steps:
        """The work itself; `new` is the first sector of a stream that begins (-1: one that goes on)."""
        try:
            while self.next < self.limit:
                place = self.geometry.locate(self.next)
                yield from self._move(place, self.next == new)
                held, ready = self._held
                if self.next >= held:
                    yield from self._pause(ready - int(self.env.now))
                yield from self._wait_for(place, self.next == new)
                end = min(place.track_end, self.limit)
                if self.next < self._held[0]:
                    end = min(end, self._held[0])
                self._passing = (self.next, end, int(self.env.now))
                self._passes.succeed()
                self._passes = self.env.event()
                yield from self._pause(self._duration(self.next, end))
                self.next = end
                self._passing = (0, 0, 0)
        except simpy.Interrupt:
            pass

    def _move(self, place: Place, new: bool) -> Steps:
        distance = abs(place.cylinder - self._arm.cylinder)
        time = int(self.seeks[distance]) if distance else self.parameters.head_switch if place.head != self._arm.head else 0
        if self.writing and (distance or place.head != self._arm.head):
            time += self.parameters.write_settle
        if new and distance:
            self.seek_count += 1
            self.seek_time += time
            self.seek_cylinders += distance
        self._arm = place
        yield from self._pause(time)

    def _wait_for(self, place: Place, new: bool) -> Steps:
        angle = slot_start(place.slot, place.per_track, self.parameters.rotation)
        wait = (angle - int(self.env.now)) % self.parameters.rotation
        if new:
            self.wait_count += 1
            self.wait_time += wait
        yield from self._pause(wait)

    def _duration(self, first: int, end: int) -> int:
        """From the start of sector `first` to the end of the sector before `end`, both on one track."""
        place = self.geometry.locate(first)
        rotation, per_track = self.parameters.rotation, place.per_track
        return slot_start(place.slot + end - first, per_track, rotation) - slot_start(place.slot, per_track, rotation)

    def _pause(self, duration: int) -> Steps:
        if duration > 0:
            yield delay(self.env, duration, MECHANISM)
