"""A timeline in Chrome's trace-event format, which Perfetto opens: a track a channel and die, and requests as flows through them.

Two processes: the host, whose requests lie in as many lanes as are served at once, from dispatch to completion, and which shows the time
before as asynchronous events; and the drive, with a track for the controller, the link, and each channel followed by its dies.  A flow
begins at a request and passes through every hold of a part that served it.  Times are microseconds, with three decimals for the
nanoseconds.  Format: "Trace Event Format", Google, 2016, JSON object format.
"""

import gzip
import heapq
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np

from flashsim.core.errors import InvalidParameterError
from flashsim.core.request import OPERATIONS, Completions, Integers, Requests
from flashsim.core.spans import CAUSES, HOST, KINDS, LEVELS, SPAN, Spans, holds, server_names
from flashsim.core.units import MICROSECONDS, NEVER, format_duration
from flashsim.device.latency_parts import PARTS

#: Processes and their first threads; a viewer takes a thread with the number of its process for the main one.
HOST_PROCESS, DRIVE_PROCESS = 1, 2
_FIRST_PART, _FIRST_LANE = 10, 1_000_000

_NAMES = [[kind if cause == HOST else f"{why} {kind}" for kind in KINDS] for cause, why in enumerate(CAUSES)]


class Timeline:
    """Writes a timeline while a run goes on; memory holds only what belongs to requests that have not completed.

    Spans are handed in first, then the requests that they served; those between the times `begin` and `end` (ns) are shown, each whole.
    `title` is the name of the drive, `about` metadata (JSON-ready).  A disk has no dies and channels, and only requests are shown of it;
    `cores` are those of a drive whose memory has a bus, both of which are shown.
    """

    def __init__(
        self, file: IO[str], title: str, dies: int = 0, channels: int = 0, begin: int = 0, end: int = NEVER,
        about: dict[str, Any] | None = None, cores: int | None = None,
    ) -> None:  # fmt: skip
        if not 0 <= begin < end:
            times = f"from {format_duration(begin)} to {format_duration(end)}"
            raise InvalidParameterError("timeline", times, "it must end after it begins")
        self._begin, self._end = begin, end
        self._thread = _threads(dies, channels, cores)
        self._lanes, self._spans, self._file = _Lanes(), np.zeros(0, SPAN), file
        self._file.write('{"displayTimeUnit":"ns","otherData":' + json.dumps(about or {}) + ',"traceEvents":[\n')
        processes = [("host", HOST_PROCESS), (title, DRIVE_PROCESS)] if dies else [(title, HOST_PROCESS)]
        metadata = [event for name, process in processes for event in _name_events("process", name, process)]
        for name, thread in zip(server_names(dies, channels, cores) if dies else (), self._thread, strict=True):
            metadata += _name_events("thread", name, DRIVE_PROCESS, thread)
        self._file.write(",\n".join(metadata))

    def add_spans(self, spans: Spans) -> None:
        """Take what parts of the drive did; of a disk, which has no tracks for parts, nothing is shown."""
        if not self._thread:
            return
        visible = holds(spans[(spans["begin"] < self._end) & (spans["end"] > self._begin)])
        if len(visible):
            self._spans = np.concatenate([self._spans, visible])

    def add_requests(self, requests: Mapping[str, Integers] | Requests, completions: Completions, parts: Integers | None = None) -> None:
        """Take requests (`operation`, `offset`, `length`, shape (n,)) that have completed, in order of their ids, after their spans.

        A request shows the `parts` of its latency (`flashsim.device.latency_parts`), shape (n, parts), if they are known.
        """
        if not len(completions):
            return
        ready = self._spans["request"] <= completions["id"][-1]
        spans, self._spans = self._spans[ready], self._spans[~ready]
        groups = _by_request(spans)
        visible = np.flatnonzero((completions["submitted"] < self._end) & (completions["completed"] >= self._begin))
        visible = visible[np.argsort(completions["started"][visible], kind="stable")]
        columns = [completions[name][visible].tolist() for name in ("id", "submitted", "started", "completed")]
        columns += [column[visible].tolist() for column in (requests["operation"], requests["offset"], requests["length"])]
        of_each = [[]] * len(visible) if parts is None else parts[visible].tolist()
        for request, own in zip(zip(*columns, strict=True), of_each, strict=True):
            self._write(self._request(request, own, groups.pop(request[0], [])))
        for others in groups.values():
            self._write(self._part(span) for span in others)

    def _request(self, request: tuple[int, ...], parts: Sequence[int], spans: list[tuple[int, ...]]) -> Iterator[str]:
        number, arrival, start, end, operation, offset, length = request
        name = OPERATIONS[operation]
        lane, fresh = self._lanes.take(start, end)
        thread = _FIRST_LANE + lane
        if fresh:
            yield from _name_events("thread", f"requests {lane}", HOST_PROCESS, thread)
        if start > arrival:
            wait = f'"cat":"queueing","name":"queued {name}","id":"{number:#x}","pid":{HOST_PROCESS},"tid":{_FIRST_LANE}'
            yield f'{{"ph":"b",{wait},"ts":{_us(arrival)},"args":{{"request":{number}}}}}'
            yield f'{{"ph":"e",{wait},"ts":{_us(start)}}}'
        more = "".join(f',"{title}, us":{_us(time)}' for title, time in zip(PARTS.values(), parts, strict=False) if time)
        yield (
            f'{{"ph":"X","cat":"request","name":"{name}","pid":{HOST_PROCESS},"tid":{thread},"ts":{_us(start)},'
            f'"dur":{_us(end - start)},"args":{{"request":{number},"offset":{offset},"length":{length}{more}}}}}'
        )
        flow = f'"cat":"flow","name":"request","id":{number}'
        if spans:
            yield f'{{"ph":"s",{flow},"pid":{HOST_PROCESS},"tid":{thread},"ts":{_us(start)}}}'
        for place, span in enumerate(spans, 1):
            yield self._part(span)
            step = '"ph":"f","bp":"e"' if place == len(spans) else '"ph":"t"'
            yield f'{{{step},{flow},"pid":{DRIVE_PROCESS},"tid":{self._thread[span[0]]},"ts":{_us(span[5])}}}'

    def _part(self, span: tuple[int, ...]) -> str:
        server, kind, cause, request, page, begin, end, level, units, _ = span
        numbers = [f'"{name}":{value}' for name, value in (("request", request), ("page", page)) if value >= 0]
        numbers += [f'"units":{units}'] * (units > 1) + [f'"level":"{LEVELS[level]}"'] * (level >= 0)
        return (
            f'{{"ph":"X","cat":"{CAUSES[cause]}","name":"{_NAMES[cause][kind]}","pid":{DRIVE_PROCESS},"tid":{self._thread[server]},'
            f'"ts":{_us(begin)},"dur":{_us(end - begin)},"args":{{{",".join(numbers)}}}}}'
        )

    def _write(self, events: Iterator[str]) -> None:
        self._file.write("".join(f",\n{event}" for event in events))

    def finish(self) -> None:
        """Write the remaining spans, of requests that have not completed."""
        for spans in _by_request(self._spans).values():
            self._write(self._part(span) for span in spans)
        self._file.write("\n]}\n")


@contextmanager
def write_timeline(path: Path, packed: bool, title: str, **rest: Any) -> Iterator[Timeline]:
    """Open a file (with gzip, if `packed`) and write a `Timeline` into it; the other parameters are that one's."""
    with gzip.open(path, "wt", 5, encoding="utf-8") if packed else path.open("w", encoding="utf-8") as file:
        timeline = Timeline(file, title, **rest)
        yield timeline
        timeline.finish()


class _Lanes:
    """Rows in which intervals lie one behind the other."""

    def __init__(self) -> None:
        self._free_at: list[int] = []
        self._busy: list[tuple[int, int]] = []
        self._idle: list[int] = []

    def take(self, begin: int, end: int) -> tuple[int, bool]:
        while self._busy and self._busy[0][0] <= begin:
            heapq.heappush(self._idle, heapq.heappop(self._busy)[1])
        lane = self._idle[0] if self._idle else -1
        fresh = lane < 0 or self._free_at[lane] > begin
        if fresh:
            lane = len(self._free_at)
            self._free_at.append(end)
        else:
            heapq.heappop(self._idle)
            self._free_at[lane] = end
        heapq.heappush(self._busy, (end, lane))
        return lane, fresh


def _by_request(spans: Spans) -> dict[int, list[tuple[int, ...]]]:
    in_order = spans[np.lexsort((spans["end"], spans["begin"], spans["request"]))]
    numbers, starts = np.unique(in_order["request"], return_index=True)
    bounds = [*starts.tolist(), len(in_order)]
    rows: list[tuple[int, ...]] = in_order.tolist()
    return {number: rows[start:end] for number, (start, end) in zip(numbers.tolist(), pairwise(bounds), strict=True)}


def _threads(dies: int, channels: int, cores: int | None) -> list[int]:
    """The thread of each server: the controller, the link, cores and bus if there are any, then each channel with its dies below it."""
    order = [dies + channels + 1, dies + channels] if dies else []
    order += [] if cores is None else [*range(dies + channels + 3, dies + channels + 3 + cores), dies + channels + 2]
    for channel in range(channels):
        order += [dies + channel, *range(channel, dies, channels)]
    return (_FIRST_PART + np.argsort(order)).tolist() if order else []


def _name_events(what: str, name: str, process: int, thread: int = 0) -> list[str]:
    place = f'"ph":"M","pid":{process},"tid":{thread}'
    return [
        f'{{"name":"{what}_name",{place},"args":{{"name":{json.dumps(name)}}}}}',
        f'{{"name":"{what}_sort_index",{place},"args":{{"sort_index":{thread or process}}}}}',
    ]


def _us(time: int) -> str:
    return f"{time // MICROSECONDS}.{time % MICROSECONDS:03d}"
