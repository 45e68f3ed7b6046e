"""The rules of the trace-event format, as its document ("Trace Event Format", Google, 2016) and Perfetto's importer state them."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

Event = dict[str, Any]
METADATA = {
    "process_name": "name", "process_labels": "labels", "process_sort_index": "sort_index", "thread_name": "name",
    "thread_sort_index": "sort_index",
}  # fmt: skip


def load(path: Path) -> dict[str, Any]:
    """A file of the JSON object format; numbers with a point stay decimal."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        document: dict[str, Any] = json.load(file, parse_float=Decimal)
    return document


def nanoseconds(microseconds: Any) -> int:
    """Nanoseconds of a time in the file, which must hold no fraction of one."""
    time = Decimal(microseconds) * 1000
    assert time == int(time) and time >= 0, microseconds
    return int(time)


def check(document: dict[str, Any]) -> dict[str, list[Event]]:
    """Assert all rules; return the events by phase, their times in nanoseconds."""
    assert document["displayTimeUnit"] in ("ms", "ns")
    by_phase: dict[str, list[Event]] = defaultdict(list)
    for event in document["traceEvents"]:
        assert isinstance(event["name"], str) and isinstance(event["pid"], int) and isinstance(event["tid"], int), event
        if event["ph"] != "M":
            event["ts"] = nanoseconds(event["ts"])
            assert isinstance(event["cat"], str) and event["cat"], event
        by_phase[event["ph"]].append(event)
    assert set(by_phase) <= set("MXbestf"), set(by_phase)
    _check_metadata(by_phase)
    slices = _check_slices(by_phase["X"])
    _check_flows([event for phase in "stf" for event in by_phase[phase]], slices)
    _check_asynchronous(by_phase["b"], by_phase["e"])
    return by_phase


def _check_metadata(by_phase: dict[str, list[Event]]) -> None:
    named = defaultdict(set)
    for event in by_phase["M"]:
        assert METADATA[event["name"]] in event["args"], event
        own = (event["pid"],) if event["name"].startswith("process") else (event["pid"], event["tid"])
        assert own not in named[event["name"]], f"named twice: {event}"
        named[event["name"]].add(own)
    for event in by_phase["X"]:
        assert (event["pid"],) in named["process_name"] and (event["pid"], event["tid"]) in named["thread_name"], event
    for event in by_phase["b"]:
        assert (event["pid"],) in named["process_name"], event


def _check_slices(events: list[Event]) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Complete events of one thread lie apart or one within the other."""
    threads = defaultdict(list)
    for event in events:
        event["dur"] = nanoseconds(event["dur"])
        threads[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for thread, slices in threads.items():
        open_until: list[int] = []
        for begin, end in sorted(slices, key=lambda slice_: (slice_[0], -slice_[1])):
            while open_until and open_until[-1] <= begin:
                open_until.pop()
            assert not open_until or end <= open_until[-1], f"slices of {thread} overlap at {begin}"
            open_until.append(end)
    return threads


def _check_flows(events: list[Event], slices: dict[tuple[int, int], list[tuple[int, int]]]) -> None:
    """A flow has one start, steps, and one end, in order of time, each within a slice of its thread."""
    flows = defaultdict(list)
    begins = {thread: {begin for begin, _ in own} for thread, own in slices.items()}
    for event in events:
        flows[event["cat"], event["name"], event["id"]].append(event)
        assert event["ts"] in begins[event["pid"], event["tid"]], f"no slice begins there: {event}"
        assert event["ph"] != "f" or event["bp"] == "e", "without bp an end belongs to the next slice"
    for name, flow in flows.items():
        assert len(flow) >= 2, name
        start, *steps, end = sorted(flow, key=lambda event: (event["ts"], "stf".index(event["ph"])))
        assert start["ph"] == "s" and end["ph"] == "f" and all(step["ph"] == "t" for step in steps), name


def _check_asynchronous(begins: list[Event], ends: list[Event]) -> None:
    """Every begin has an end of the same category, number and process, not before it."""
    own = {(event["cat"], event["id"], event["pid"]): event for event in begins}
    assert len(own) == len(begins) == len(ends)
    for event in ends:
        begin = own[event["cat"], event["id"], event["pid"]]
        assert begin["ts"] <= event["ts"] and begin["name"] == event["name"]
