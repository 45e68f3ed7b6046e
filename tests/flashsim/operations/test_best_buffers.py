"""The exhibit of the best buffers: what it runs, what it says of devices that cannot run, and what it shows."""

from __future__ import annotations

from typing import Any

import pytest

from flashsim.device import presets
from flashsim.literature.do2009 import allocations, every_device, hardware, hybrid_rule
from flashsim.literature.do2009.runs import JOINS, MEMORY, Setup, laid_out
from flashsim.studies.runs.jobs import JobResult, Results, Settings

SOME = ["hp-c2200a", "ocz-core-60gb", "toshiba-5400-320gb"]


def made(scale: float, join: str, memory: int) -> dict[str, Any]:
    """A join with both divisions on every device."""
    settings = Settings(scale=scale / allocations.SHARE)
    (job,) = [job for job in allocations.jobs([], settings) if (job.parameters["join"], job.parameters["memory"]) == (join, memory)]
    return allocations.cell(Results(settings, {job: JobResult(job.make(), 0.0, recalled=False)}), join, memory)


def test_every_join_and_buffer_pool_is_one_run() -> None:
    wanted = allocations.jobs([], Settings(scale=1.0))
    assert len(wanted) == len(set(wanted)) == 24
    assert {job.parameters["scale"] for job in wanted} == {allocations.SHARE}


def test_runs_and_sections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presets, "names", lambda: SOME)
    settings = Settings(scale=0.0005 / allocations.SHARE)
    jobs = [job for job in allocations.jobs([], settings) if job.parameters["join"] == "hybrid-hash" and job.parameters["memory"] == 600]
    results = Results(settings, {job: JobResult(job.make(), 0.0, recalled=False) for job in jobs})
    cells = allocations.cell(results, "hybrid-hash", 600)
    assert list(cells) == SOME
    for name in SOME:
        assert all(
            len(cells[name][kind]["seconds"]) == every_device.PLACES and min(cells[name][kind]["seconds"]) > 0 for kind in ("haas", "best")
        )
        assert cells[name]["best"]["model"] <= cells[name]["haas"]["model"]
    (told,) = allocations.sections(results)
    assert len(told.tables[0]) == len(SOME) * 4 and "<svg" in told.pictures["allocations"]


def test_a_device_that_is_too_small_is_named_with_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presets, "names", lambda: ["hp-c2200a"])
    monkeypatch.setattr(allocations, "bytes_needed", lambda files: 10**9)
    found = made(0.0005, "bnl", 600)
    assert found["hp-c2200a"]["problem"] == "it holds 335 MB, and relations and temporaries take up to 1,000 MB"


def test_a_pool_that_is_too_small_is_named_with_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presets, "names", lambda: SOME[1:])
    found = made(0.0005, "sort-merge", 100)
    assert all("sort-merge needs" in cell["problem"] for cell in found.values())


def test_what_is_slower_by_more_than_the_noise_is_listed() -> None:
    """The first loses 4 % everywhere, the second 10 % with as much noise, the third half a per cent, as the closed form may."""
    seconds = ([0.96] * 5, [0.7, 1.1, 0.9, 0.8, 1.0], [0.995] * 5)
    cells = {
        ("bnl", 100): {name: {"haas": {"seconds": haas}, "best": {"seconds": [1.0] * 5}} for name, haas in zip(SOME, seconds, strict=True)}
    }
    assert [(name, round(loss, 1)) for name, _, _, loss in allocations.slower(cells, SOME)] == [(SOME[0], 4.0)]
    assert allocations.noise(cells["bnl", 100][SOME[1]]) == pytest.approx(2 * 100 * (0.1 / 4) ** 0.5 / 5**0.5)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("memory", MEMORY)
def test_no_join_on_any_device_is_slower_than_with_the_buffers_of_haas(memory: int) -> None:
    """By more than the noise and what the closed form is allowed, as in the report at scale 1; one device of nineteen holds too little."""
    cells = {(join, memory): made(allocations.SHARE, join, memory) for join in JOINS}
    assert sum(allocations.gain(cell) is not None for found in cells.values() for cell in found.values()) == 4 * 18
    assert allocations.slower(cells, presets.names()) == []


def test_files_lie_anywhere_on_a_disk_and_near_the_begin_of_flash() -> None:
    files = laid_out(Setup("bnl", 600), 0.0005, 2009)[0]
    disk, flash = (every_device.places(name, files, 2009) for name in (SOME[2], "nvme-tlc-1tb"))
    assert max(drive.start for drive in disk) > 10e9 and max(drive.start for drive in flash) < every_device.FLASH_PLACES
    assert len({drive.start for drive in disk}) == every_device.PLACES and all(drive.start % 2**20 == 0 for drive in disk + flash)
    assert every_device.places(SOME[2], files, 2009) == disk


def test_the_printed_rule_of_hybrid_hash_loses_on_the_simulated_disk_as_in_the_formula() -> None:
    settings = Settings(scale=0.1)
    job = hybrid_rule.jobs([], settings)[2]
    results = Results(settings, {job: JobResult(job.make(), 0.0, recalled=False)})
    (memory,) = hybrid_rule.losses(results, "printed")
    assert memory == 300
    assert hybrid_rule.losses(results, "printed", "formula")[300] > 0.1 and hybrid_rule.losses(results, "printed")[300] > 0.1
    assert hybrid_rule.losses(results, "best", "formula")[300] > -0.01
    (section,) = hybrid_rule.sections(results)
    assert len(section.tables[0]) == 3 and "<svg" in section.pictures["hybrid-rule"]


def test_the_lessons_are_told_for_every_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presets, "names", lambda: [*SOME, "nvme-tlc-1tb"])
    settings = Settings(scale=0.001 / hardware.SHARE)
    results = Results(settings, {job: JobResult(job.make(), 0.0, recalled=False) for job in hardware.jobs([], settings)})
    lessons = hardware.Lessons(results)
    assert lessons.devices == [*SOME, "nvme-tlc-1tb"]
    assert all(lessons.blocked_gain(name) > 0.9 for name in lessons.devices)
    assert lessons.cpu_share("nvme-tlc-1tb") > lessons.cpu_share("toshiba-5400-320gb")
    (section,) = hardware.sections(results)
    assert len(section.tables[0]) == 4 and "Of 4 devices" in section.text and "<svg" in section.pictures["hardware"]
