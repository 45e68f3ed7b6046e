"""Programs inside a drive: bandwidth, competition with the host, cores, grants, several drives, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.core.host_queue import one_command_each
from flashsim.core.request import READ, WRITE, make_requests
from flashsim.core.units import MIB, MILLISECONDS, SECONDS
from flashsim.device import presets
from flashsim.device.scaling import part_of
from flashsim.device.smart.client import Polling, run
from flashsim.device.smart.protocol import TRANSITIONS, ProgramSteps, State, Status, Task
from flashsim.device.smart.runtime import SmartDrive

PRESET = part_of(presets.load("samsung-smart-400gb"), 100)


def smart_drive(preset: presets.Preset = PRESET, **changes: int) -> SmartDrive:
    """A drive that is loaded, with some values of its parameters or its inside changed."""
    assert preset.flash and preset.inside
    own = {name: value for name, value in changes.items() if hasattr(preset.flash, name)}
    others = {name: value for name, value in changes.items() if name not in own}
    preset = replace(preset, parameters=replace(preset.flash, **own), inside=replace(preset.inside, **others))  # type: ignore[arg-type]
    drive = SmartDrive.of(preset)
    drive.model.load(0, 512 * MIB)
    return drive


def scan(count: int = 512, size: int = MIB, work: int = 1, results: int = 0, first: int = 0, **rest: int) -> Task:
    each = np.arange(count, dtype=np.int64)
    return Task(ProgramSteps((first + each) * size, np.full(count, size), np.full(count, work), np.full(count, results)), **rest)


def bandwidth(drive: SmartDrive, task: Task) -> float:
    (share,) = run([drive], [task])
    assert share.status is Status.DONE
    return sum(task.steps.lengths.tolist()) * SECONDS / (share.end - share.begin)


def test_internal_bandwidth_is_that_of_the_bus() -> None:
    assert bandwidth(smart_drive(), scan(ahead=31)) == pytest.approx(1560e6, rel=0.02)


def test_internal_bandwidth_is_that_of_the_channels_where_they_are_slower() -> None:
    drive = smart_drive(channel_rate=100 * 10**6, read_latency=200_000, write_latency=1_500_000)
    assert bandwidth(drive, scan(ahead=31)) == pytest.approx(800e6, rel=0.02)


@pytest.mark.parametrize("cores", [1, 2, 4])
def test_cores_are_the_limit_where_they_are_slower(cores: int) -> None:
    """A MiB takes 0.67 ms on the bus, and here 5 ms of a core."""
    elapsed = 512 * MIB / bandwidth(smart_drive(cores=cores), scan(work=5 * MILLISECONDS, ahead=31, threads=cores))
    assert elapsed == pytest.approx(512 * 5e-3 / cores, rel=0.02)


def test_a_session_has_no_more_cores_than_its_threads() -> None:
    elapsed = 512 * MIB / bandwidth(smart_drive(cores=4), scan(work=5 * MILLISECONDS, ahead=31, threads=2))
    assert elapsed == pytest.approx(512 * 5e-3 / 2, rel=0.02)


@pytest.mark.parametrize("cores", [1, 2])
def test_two_sessions_share_the_cores(cores: int) -> None:
    drive = smart_drive(cores=cores)
    for first in (0, 256):
        drive.open(scan(256, work=cores * MILLISECONDS, first=first))
    ends = {}
    while len(ends) < 2:
        for answer in drive.advance(drive.now + MILLISECONDS)[1]:
            if answer.status is Status.DONE and answer.verb.value == "get":
                ends[answer.session] = answer.at
        for session in drive.sessions.values():
            if not session.commands and session.number not in ends:
                drive.get(session.number, MIB)
    assert [end / SECONDS for end in ends.values()] == pytest.approx([512e-3] * 2, rel=0.02)  # a core each, or one in turn
    for session in (0, 1):
        drive.close(session)
    while drive.sessions:
        drive.advance()
    assert drive.free_memory == drive.inside.memory


@pytest.mark.parametrize("rate", [500, 800, 1560])
def test_host_reads_slow_down_as_the_bus_says(rate: int) -> None:
    """Eight reads of the host at a time beside a scan of twice as much: the bus is always busy, and the link is the host's alone."""
    alone, beside = (smart_drive(bus_rate=rate * 10**6) for _ in range(2))
    requests = make_requests(READ, 256 * MIB + MIB * np.arange(256), MIB)
    requests["dependency"] = np.maximum(np.arange(256) - 8, -1)
    for drive in (alone, beside):
        drive.submit(requests, one_command_each(requests), 0)
    while alone.busy:
        alone.advance()
    (share,) = run([beside], [scan(1024, MIB // 2, ahead=63)])
    ends = [share.completions["completed"]]
    while beside.busy:
        ends.append(beside.advance()[0]["completed"])
    host, together = int(np.concatenate(ends).max()), 768 * MIB / rate * 1000
    assert alone.now == pytest.approx(256 * MIB / min(550, rate) * 1000, rel=0.01)
    assert beside.statistics()["bus_busy_ns"] == pytest.approx(together, rel=0.001)
    if rate < 1000:  # each waits for the other's pages in turn
        assert max(host, share.end) == pytest.approx(together, rel=0.01)
        assert host > 1.9 * alone.now
    else:  # the link holds the host up as well
        assert together < max(host, share.end) < 1.06 * together
        assert host > 1.1 * alone.now


@pytest.mark.parametrize(("rate", "size"), [(500, MIB), (500, MIB // 2), (800, MIB), (800, MIB // 2), (1560, MIB)])
def test_the_bus_is_shared_as_requests_are_under_way(rate: int, size: int) -> None:
    """Of the bus, which serves pages in order, a host with 8 MiB under way has its part of all that is, as far as its link takes it."""
    alone, beside = (smart_drive(bus_rate=rate * 10**6) for _ in range(2))
    requests = make_requests(READ, 256 * MIB + MIB * np.arange(256), MIB)
    requests["dependency"] = np.maximum(np.arange(256) - 8, -1)
    for drive in (alone, beside):
        drive.submit(requests, one_command_each(requests), 0)
    while alone.busy:
        alone.advance()
    (share,) = run([beside], [scan(512 * MIB // size, size, ahead=7)])
    host = 256 * MIB * SECONDS / int(share.completions["completed"].max())
    assert 256 * MIB * SECONDS / alone.now == pytest.approx(min(550e6, rate * 1e6), rel=0.01)
    assert host == pytest.approx(min(550e6, rate * 1e6 * MIB / (MIB + size)), rel=0.02)


def test_results_wait_for_the_host_and_hold_the_program_up() -> None:
    """Each step brings as much as there is room for, and the host asks every 10 ms."""
    drive = smart_drive()
    task = scan(20, results=1000, room=1000)
    (share,) = run([drive], [task], Polling(pause=10 * MILLISECONDS))
    assert share.results == 20_000
    assert share.gets >= 20


def test_a_step_without_an_extent_follows_all_before_it() -> None:
    """What a program hands over when it has seen everything, here of 7 ms, behind 19 steps of 5 ms on two cores."""
    task = scan(20, work=5 * MILLISECONDS, threads=2)
    task.steps.lengths[19], task.steps.work[19], task.steps.results[19] = 0, 7 * MILLISECONDS, 1000
    (share,) = run([smart_drive()], [task])
    assert share.results == 1000
    assert (share.end - share.opened) / MILLISECONDS == pytest.approx(10 * 5 + 7, abs=2)


def test_a_copy_inside_passes_the_bus_twice_and_the_link_never() -> None:
    drive, task = smart_drive(write_buffer=0, power_protected=False, program=100_000, write_latency=200_000), scan(256, ahead=31)
    steps = task.steps._replace(outputs=task.steps.lengths, targets=task.steps.offsets + 256 * MIB)
    (share,) = run([drive], [task._replace(steps=steps)])
    statistics = drive.statistics()
    assert (share.end - share.opened) == pytest.approx(512 * MIB / 1560 * 1000, rel=0.03)
    assert statistics["internal_write_bytes"] == statistics["internal_read_bytes"] == 256 * MIB
    assert statistics["link_busy_ns"] < 10 * MILLISECONDS
    assert statistics["write_amplification"] == pytest.approx(1)


def test_a_grant_is_what_memory_is_free() -> None:
    drive = smart_drive(memory=4 * MIB)
    (share,) = run([drive], [scan(8, ahead=50, room=100)])
    assert share.status is Status.DONE
    for memory, status in ((3 * MIB, Status.DONE), (3 * MIB + 1, Status.NO_MEMORY), (4 * MIB, Status.NO_MEMORY)):  # beside one extent
        (share,) = run([drive], [scan(8, memory=memory)])
        assert share.status is status
    assert drive.free_memory == 4 * MIB


def test_a_failed_program_says_so_and_leaves_the_drive_as_it_was() -> None:
    drive = smart_drive()
    (share,) = run([drive], [scan(64, results=100, failure=20)])
    assert share.status is Status.PROGRAM_FAILED
    while drive.busy:  # reads that were under way
        drive.advance()
    assert not drive.sessions
    assert drive.free_memory == drive.inside.memory


def test_a_host_that_goes_away_loses_its_session() -> None:
    drive = smart_drive(patience=SECONDS)
    drive.open(scan(64))
    drive.advance()
    drive.advance(10 * SECONDS)
    assert not drive.sessions
    assert drive.free_memory == drive.inside.memory


def test_drives_scale_until_the_host_is_the_limit() -> None:
    tasks = [scan(256, results=100_000, ahead=31) for _ in range(4)]
    one = run([smart_drive()], tasks[:1])[0].end
    four = max(share.end for share in run([smart_drive() for _ in range(4)], tasks))
    assert four == pytest.approx(one, rel=0.01)
    merged = max(share.end for share in run([smart_drive() for _ in range(4)], tasks, Polling(rate=100 * 10**6)))
    assert merged == pytest.approx(4 * 256 * 100_000 / 100e6 * SECONDS, rel=0.05)


def test_spans_of_cores_are_their_busy_time() -> None:
    drive = smart_drive()
    drive.record_spans(True)
    run([drive], [scan(64, work=MILLISECONDS, threads=2)])
    spans = drive.spans()
    cores = spans[spans["server"] >= spans["server"].max() - 1]
    assert (cores["end"] - cores["begin"]).sum() == drive.core_busy_ns == 64 * MILLISECONDS


def test_the_page_shows_the_state_machine_as_it_is() -> None:
    page = Path(__file__).parents[3] / "docs" / "explanation" / "smart_protocol.md"
    lines = [f"    {before.value} --> {after.value} : {event.value}" for (before, event), after in TRANSITIONS.items()]
    assert "\n".join(["```text", "stateDiagram-v2", *lines, "```"]) in page.read_text(encoding="utf-8")


def test_every_state_can_be_left_and_reached() -> None:
    befores, afters = {before for before, _ in TRANSITIONS}, set(TRANSITIONS.values())
    assert befores == set(State) - {State.CLOSED}
    assert afters == set(State) - {State.NONE}


def test_what_is_refused() -> None:
    with pytest.raises(RefusedError, match="no .inside."):
        SmartDrive.of(presets.load("ocz-core-60gb"))
    drive = smart_drive()
    flags = make_requests([READ, WRITE], 0, 4096)
    flags["flags"] = 6
    with pytest.raises(InvalidParameterError, match="flags"):
        drive.submit(flags, one_command_each(flags), 0)
    with pytest.raises(InvalidParameterError, match="tasks"):
        run([drive], [])
