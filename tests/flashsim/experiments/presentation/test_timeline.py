"""Timelines obey the format's rules, hold every span and request once, in any number of pieces, and only what their window asks for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashsim.core.errors import InvalidParameterError
from flashsim.core.request import Completions, Requests
from flashsim.core.spans import CAUSES, KINDS, SPAN, Spans
from flashsim.core.units import MIB, NEVER
from flashsim.device import presets
from flashsim.device.scaling import part_of
from flashsim.device.smart.client import run
from flashsim.device.smart.protocol import ProgramSteps, Task
from flashsim.device.smart.runtime import SmartDrive
from flashsim.experiments.presentation.timeline import Timeline, write_timeline
from tests.cases import with_each
from tests.commands import Run
from tests.flashsim.operations.spans import CHANNELS, DIES, made_up
from tests.flashsim.operations.trace_events import Event, check, load


def _written(
    path: Path, requests: Requests, completions: Completions, spans: Spans, cuts: list[int], **window: int
) -> dict[str, list[Event]]:
    """Hand requests in pieces, before each the spans that ended up to its last completion."""
    with write_timeline(path, path.suffix == ".gz", "a drive", dies=DIES, channels=CHANNELS, **window) as timeline:
        given_spans = 0
        for begin, end in zip([0, *cuts], [*cuts, len(requests)], strict=True):
            last = int(completions["completed"][:end].max(initial=0)) if end < len(requests) else NEVER
            until = int(np.searchsorted(spans["end"], last, side="right"))
            timeline.add_spans(spans[given_spans:until])
            given_spans = max(given_spans, until)
            timeline.add_requests(requests[begin:end], completions[begin:end])
    return check(load(path))


def _told(event: Event) -> tuple[Any, ...]:
    """What an event says of a hold."""
    return event["name"], event["cat"], event["args"].get("request", -1), event["args"].get("page", -1), event["ts"], event["dur"]


@given(st.integers(0, 120), st.integers(0, 1000), st.lists(st.integers(0, 120), max_size=4), st.booleans())
def test_every_hold_and_request_is_there_once(
    tmp_path_factory: pytest.TempPathFactory, count: int, seed: int, cuts: list[int], packed: bool
) -> None:
    requests, completions, spans = made_up(count, seed, first=5)
    path = tmp_path_factory.mktemp("timeline") / ("t.json.gz" if packed else "t.json")
    events = _written(path, requests, completions, spans, sorted(min(cut, count) for cut in cuts))
    drive = [event for event in events["X"] if event["pid"] == 2]
    expected = [
        (KINDS[kind] if cause == 0 else f"{CAUSES[cause]} {KINDS[kind]}", CAUSES[cause], request, page, begin, end - begin)
        for _, kind, cause, request, page, begin, end, *_ in spans.tolist()
    ]
    assert sorted(map(_told, drive)) == sorted(expected)
    host = {event["args"]["request"]: (event["ts"], event["ts"] + event["dur"]) for event in events["X"] if event["pid"] == 1}
    assert host == {row["id"]: (row["started"], row["completed"]) for row in completions}
    assert len(events["s"]) == len(events["f"]) == count and len(events["t"]) == 2 * count
    assert len(events["b"]) == int((completions["started"] > completions["submitted"]).sum())


def test_tracks_are_named_and_each_holds_its_own_part(tmp_path: Path) -> None:
    requests, completions, spans = made_up(200, 1)
    events = _written(tmp_path / "t.json", requests, completions, spans, [])
    names = {event["tid"]: event["args"]["name"] for event in events["M"] if event["name"] == "thread_name" and event["pid"] == 2}
    order = [names[thread] for thread in sorted(names)]
    assert order == ["controller", "link", "channel 0", "die 0", "die 2", "channel 1", "die 1", "die 3"]
    on_dies = sorted((names[event["tid"]], event["ts"]) for event in events["X"] if names.get(event["tid"], "").startswith("die"))
    assert on_dies == sorted((f"die {span['server']}", int(span["begin"])) for span in spans[spans["server"] < DIES])


def test_lanes_are_no_more_than_requests_served_at_once(tmp_path: Path) -> None:
    requests, completions, spans = made_up(300, 2)
    events = _written(tmp_path / "t.json", requests, completions, spans, [])
    edges = np.concatenate([completions["started"], completions["completed"]])
    steps = np.repeat([1, -1], len(completions))[np.lexsort((np.repeat([1, 0], len(completions)), edges))]
    lanes = {event["tid"] for event in events["X"] if event["pid"] == 1}
    assert len(lanes) == np.cumsum(steps).max()


def test_only_what_happens_within_the_window_is_written(tmp_path: Path) -> None:
    requests, completions, spans = made_up(300, 3)
    begin, end = 10_000, 20_000
    events = _written(tmp_path / "t.json", requests, completions, spans, [100, 200], begin=begin, end=end)
    inside = (spans["begin"] < end) & (spans["end"] > begin)
    assert 0 < inside.sum() < len(spans)
    assert len([event for event in events["X"] if event["pid"] == 2]) == inside.sum()
    assert all(event["ts"] < end and event["ts"] + event["dur"] > begin for event in events["X"] if event["pid"] == 2)


def test_a_disk_shows_its_requests(tmp_path: Path) -> None:
    requests, completions, _ = made_up(50, 4)
    with write_timeline(tmp_path / "t.json", False, "a disk") as timeline:
        timeline.add_requests(requests, completions)
    events = check(load(tmp_path / "t.json"))
    assert len(events["X"]) == 50 and not events["s"] and {event["pid"] for event in events["X"]} == {1}


def test_a_window_that_ends_before_it_begins_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "t.json").open("w") as file, pytest.raises(InvalidParameterError, match="timeline"):
        Timeline(file, "a drive", begin=5, end=5)


def test_memory_holds_only_what_is_not_yet_written(tmp_path: Path) -> None:
    requests, completions, spans = made_up(400, 5)
    with (tmp_path / "t.json").open("w") as file:
        timeline = Timeline(file, "a drive", DIES, CHANNELS)
        timeline.add_spans(spans)
        timeline.add_requests(requests[:399], completions[:399])
        held = timeline._spans
        assert set(held["request"].tolist()) == {399}


@pytest.mark.parametrize("preset", ["intel-x25e-64gb", "toshiba-5400-320gb", "nvme-tlc-1tb"])
def test_replays_draw_timelines_that_obey_the_rules(preset: str, flashsim: Run, test_data: Path) -> None:
    trace = test_data / "mqsim" / "tpcc-small.trace"
    result = flashsim(f"trace replay {trace} --device {preset} --wrap --limit 400 --timeline t.json.gz")
    assert result.exit_code == 0, result.output
    document = load(Path("t.json.gz"))
    assert document["otherData"]["parameters"]["device"] == preset
    events = check(document)
    requests = [event for event in events["X"] if event["pid"] == 1]
    assert len(requests) == 400 and len(events["s"]) == len(events["f"]) == (0 if preset.startswith("toshiba") else 400)
    for request in requests if not preset.startswith("toshiba") else []:
        parts = {name.removesuffix(", us"): time for name, time in request["args"].items() if name.endswith(", us")}
        before = sum(parts.pop(name, 0) for name in ("wait for a command slot", "submission"))
        assert before >= 0 and sum(parts.values()) == pytest.approx(request["dur"], abs=0.001 * len(parts))


def test_measured_requests_of_a_benchmark_are_drawn(flashsim: Run) -> None:
    line = "device bench intel-x25e-64gb --quick --only granularity --size 8MiB --count 16 --state 0 --timeline t.json"
    result = flashsim(f"{line} --json b.json")
    assert result.exit_code == 0, result.output
    runs = json.loads(Path("b.json").read_text())["runs"]
    host = [event for event in check(load(Path("t.json")))["X"] if event["pid"] == 1]
    assert len(host) == sum(run["requests"] + run["ignored"] for run in runs)


def test_a_real_file_has_no_timeline(flashsim: Run, here: Path) -> None:
    (here / "disk.bin").write_bytes(bytes(1 << 20))
    result = flashsim("device bench ./disk.bin --quick --timeline t.json")
    assert result.exit_code != 0 and "only simulated drives show" in f"{result.output}{result.exception}"
    assert [path.name for path in here.iterdir()] == ["disk.bin"]


@with_each(
    ("options", "says"),
    [
        ("--timeline-from 1ms", "timeline-from"),
        ("--timeline t.json --timeline-from 2ms --timeline-to 1ms", "timeline-to"),
        ("--timeline t.json --timeline-to 5", "timeline-to"),
        ("--timeline a.txt", "also what FILE names"),
    ],
)
def test_bad_timelines_are_refused_and_leave_nothing(options: str, says: str, flashsim: Run, here: Path) -> None:
    (here / "a.txt").write_text("0.5 0 0 8 1\n")
    result = flashsim(f"trace replay a.txt --device ocz-core-60gb {options}")
    assert result.exit_code != 0 and says in f"{result.output}{result.exception}"
    assert [path.name for path in here.iterdir()] == ["a.txt"]


@with_each(
    ("phase", "change"),
    [("X", {"dur": 0.0005}), ("X", {"tid": 99}), ("f", {"bp": "x"}), ("s", {"ts": 0.001}), ("t", {"id": 12345}), ("b", {"id": "0x0"})],
)
def test_the_rules_find_what_is_wrong(phase: str, change: dict[str, Any], tmp_path: Path) -> None:
    requests, completions, spans = made_up(50, 6)
    _written(tmp_path / "t.json", requests, completions, spans, [])
    document = json.loads((tmp_path / "t.json").read_text())
    next(event for event in reversed(document["traceEvents"]) if event["ph"] == phase).update(change)
    (tmp_path / "bad.json").write_text(json.dumps(document))
    with pytest.raises((AssertionError, KeyError)):
        check(load(tmp_path / "bad.json"))


def test_spans_are_small() -> None:
    assert SPAN.itemsize <= 44


def test_cores_and_the_bus_of_a_smart_drive_have_their_tracks(tmp_path: Path) -> None:
    drive = SmartDrive.of(part_of(presets.load("samsung-smart-400gb"), 100))
    drive.model.load(0, 4 * MIB)
    drive.record_spans(True)
    each, size = np.arange(4), np.full(4, MIB)
    run([drive], [Task(ProgramSteps(each * MIB, size, size, size // 1000), threads=2)])
    with write_timeline(tmp_path / "t.json", False, "a drive", dies=64, channels=8, cores=2) as timeline:
        timeline.add_spans(drive.spans())
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    threads = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    names = [threads[event["tid"]] for event in events if event["ph"] == "X" and event["name"] == "step"]
    assert sorted(names) == ["core 0", "core 0", "core 1", "core 1"]
    assert sum(threads[event["tid"]] == "memory bus" for event in events if event["ph"] == "X") > 4 * MIB // 8192
