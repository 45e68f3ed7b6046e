"""The drive's mechanism as a SimPy process: an arm that moves, platters that turn, and sectors that pass, track by track."""

from collections.abc import Generator
from typing import Any

import simpy

from flashsim.core.host_specification import OPERATIONS, delay
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.state.geometry import Geometry, Place, passing, slots_ended
from flashsim.hdd.state.layout import SLOT_UNIT
from flashsim.hdd.state.seek import seek_curve

Steps = Generator[simpy.Event, Any, None]


class Mechanism:
    """Transfers consecutive sectors from `next` up to `limit`, then rests; the controller may move the limit on or begin elsewhere.

    Of the events of one nanosecond its own come last, after the controller's: what that decides then still counts.
    """

    def __init__(self, env: simpy.Environment, parameters: HddParameters, counters: dict[str, int]) -> None:
        self.env = env
        self.parameters = parameters
        self.counters = counters
        self.geometry, self.seeks = Geometry(parameters), seek_curve(parameters)
        self.next = self.limit = 0
        self.writing = False
        self.arm = self.geometry.locate(0)
        self.passed_before = 0  # sectors of its track that passed whole while the stream waited for its first
        self._stop = (0, 0, 0)  # the mechanism goes to this sector at the second, a time, and has its data at the third
        self.marks = {"set out": 0, "arrived": 0, "able": 0, "passed": 0}  # times of the stream begun last
        self._passing = (0, 0, 0)  # the sectors (first, after the last) that pass since a time
        self._passes = env.event()
        self._work: simpy.Process | None = None

    @property
    def resting(self) -> bool:
        """True if all sectors up to the limit have been transferred."""
        return self.position == self.limit

    @property
    def position(self) -> int:
        """The first sector that has not been transferred; one whose transfer ends now has been."""
        first, end, since = self._passing
        if first == end:
            return self.next
        place = self.geometry.locate(first)
        angle = passing(place.part, place.slots, self.parameters.rotation)
        slots = slots_ended(angle + int(self.env.now) - since, place.part, place.slots, self.parameters.rotation)
        return min(end, first + slots)

    def begin(self, first: int, limit: int, writing: bool, moves: int, ready: int) -> None:
        """Leave what is being done, and transfer from `first` up to `limit`.

        The arm moves from `moves` on; what is to be written is there at `ready`.
        """
        self.stop()
        self.next, self.limit, self.writing = first, limit, writing
        self._stop = (first, moves, ready)
        self._count(moves, ready)
        self._work = self.env.process(self._transfer(first))

    def _count(self, moves: int, ready: int) -> None:
        place = self.geometry.locate(self.next)
        move, distance = self._first_move(place), abs(place.cylinder - self.arm.cylinder)
        if distance:
            self.counters["seeks"] += 1
            self.counters["seek_time"] += move
            self.counters["seek_cylinders"] += distance
        wait = self.wait_for(place, max(moves + move, ready))
        self.counters["waits"] += 1
        self.counters["wait_time"] += wait
        self.passed_before = min(self.next - place.first, wait * place.slots // self.parameters.rotation)

    def _first_move(self, place: Place) -> int:
        move = self.move_time(self.arm, place, self.writing)
        return max(move, self.parameters.write_move) if self.writing else move

    def stop(self) -> None:
        """Leave what is being done; the arm stays where the next sector is, or at rest where the last one was."""
        position = self.position
        if self.limit > 0:
            self.arm = self.geometry.locate(position if position < self.limit else position - 1)
        if self._work is not None and self._work.is_alive:
            self._work.interrupt()
        self._passing = (0, 0, 0)
        self.next = self.limit = 0

    def extend(self, limit: int, moves: int, ready: int) -> None:
        """Go on up to `limit`, beyond the old limit from `moves` on; what is to be written there is there at `ready`."""
        if limit <= self.limit:
            return
        self._stop = (self.limit, moves, ready)
        self.limit = limit
        assert self._work is not None
        if not self._work.is_alive:
            self._work = self.env.process(self._transfer(-1))

    def wait_for_sector(self, sector: int) -> Steps:
        while self.position <= sector:
            first, end, since = self._passing
            if first <= sector < end:
                yield delay(self.env, since + self._duration(first, sector + 1) - int(self.env.now), OPERATIONS)
            else:
                yield self._passes

    def move_time(self, source: Place, target: Place, writing: bool) -> int:
        """Nanoseconds to move the arm."""
        if source.track == target.track:
            return 0
        time = int(self.seeks[abs(source.cylinder - target.cylinder)])
        if source.head != target.head:
            time = max(time, self.parameters.head_switch)
        return max(0, time + self.parameters.write_settle) if writing else time

    def wait_for(self, place: Place, time: int) -> int:
        """Nanoseconds from `time` on until a place comes round."""
        return (passing(place.part, place.slots, self.parameters.rotation) - time) % self.parameters.rotation

    def _transfer(self, new: int) -> Steps:
        """The work itself; `new` is the first sector of a stream that begins (-1: one that goes on)."""
        try:
            while self.next < self.limit:
                place = self.geometry.locate(self.next)
                sector, moves, _ = self._stop
                if self.next == sector:
                    yield from self._pause(moves - int(self.env.now))
                self._mark("set out", new)
                move = self._first_move(place) if self.next == new else self.move_time(self.arm, place, self.writing)
                self.arm = place
                yield from self._pause(move)
                self._mark("arrived", new)
                sector, _, ready = self._stop
                if self.next >= sector:
                    yield from self._pause(ready - int(self.env.now))
                self._mark("able", new)
                yield from self._pause(self.wait_for(place, int(self.env.now)))
                self._mark("passed", new)
                end = min(place.end, self.limit)
                if self.next < self._stop[0]:
                    end = min(end, self._stop[0])
                self._passing = (self.next, end, int(self.env.now))
                self._passes.succeed()
                self._passes = self.env.event()
                yield from self._pause(self._duration(self.next, end))
                self.next = end
                self._passing = (0, 0, 0)
        except simpy.Interrupt:
            pass

    def _mark(self, what: str, new: int) -> None:
        """Note when a stream that begins with the sector `new` comes so far."""
        if self.next == new:
            self.marks[what] = int(self.env.now)

    def _duration(self, first: int, end: int) -> int:
        """From the start of sector `first` to the end of the sector before `end`, both in one piece of a track."""
        place = self.geometry.locate(first)
        rotation, parts = self.parameters.rotation, (end - first) * SLOT_UNIT
        return passing(place.part + parts, place.slots, rotation) - passing(place.part, place.slots, rotation)

    def _pause(self, duration: int) -> Steps:
        if duration > 0:
            yield delay(self.env, duration, OPERATIONS + 1)
