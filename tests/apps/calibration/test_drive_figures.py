"""Figures of drives from tables and from fio's files, and what is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flashsim.apps.calibration.drive_figures import DriveFigure, DriveLoad
from flashsim.apps.calibration.figure_files import read, read_random_reads
from flashsim.apps.calibration.identification import hold_back
from flashsim.core.errors import DamagedFileError, FlashsimWarning, InvalidParameterError
from flashsim.core.request import READ, WRITE
from flashsim.core.units import KIB
from tests.cases import with_each
from tests.commands import Run

ROWS = [
    {"operation": "read", "size": "4KiB", "depth": 32, "figure": "iops", "value": "90e3"},
    {"operation": "read", "order": "sequential", "size": "128KiB", "depth": 4, "figure": "bandwidth", "value": "2.5GB/s"},
    {"operation": "write", "rate": 5000, "state": "steady", "used": 0.8, "figure": "p99", "value": "1.5ms"},
    {"operation": "write", "depth": 8, "state": "steady", "reads": 0.7, "figure": "iops", "value": "3000"},
]
FIGURES = [
    DriveFigure(DriveLoad(READ, depth=32), "iops", 90_000),
    DriveFigure(DriveLoad(READ, 128 * KIB, random=False, depth=4), "bandwidth", 2.5e9),
    DriveFigure(DriveLoad(WRITE, state="steady", rate=5000.0, used=0.8), "p99", 1.5e6),
    DriveFigure(DriveLoad(WRITE, depth=8, state="steady", reads=0.7), "iops", 3000),
]


def test_a_table_is_the_same_as_csv_and_as_toml(tmp_path: Path) -> None:
    names = ["operation", "order", "size", "depth", "rate", "state", "used", "reads", "figure", "value"]
    lines = [",".join(str(row.get(name, "")) for name in names) for row in ROWS]
    (tmp_path / "figures.csv").write_text("\n".join([",".join(names), *lines]))
    tables = ["\n".join(f"{name} = {json.dumps(value)}" for name, value in row.items()) for row in ROWS]
    (tmp_path / "figures.toml").write_text("\n".join(f"[[figures]]\n{table}" for table in tables))
    assert read(tmp_path / "figures.csv") == read(tmp_path / "figures.toml") == FIGURES


def test_random_reads_of_closed_loops_are_figures_of_all_their_requests_outstanding(tmp_path: Path) -> None:
    path = tmp_path / "reads.csv"
    header = "engine,rw,bs,queue_depth,processes,iops,mean_us,p50_us,p90_us,p99_us"
    path.write_text(f"{header}\nspdk,randread,16k,8,4,90000,350,300,,2000.5\nio_uring,randread,4k,1,1,9000,110,100,120,200\n")
    load = DriveLoad(READ, 16 * KIB, depth=32)
    few = [DriveFigure(load, "iops", 90_000), DriveFigure(load, "p50", 300_000), DriveFigure(load, "p99", 2_000_500)]
    assert read_random_reads(path, "spdk") == few
    of_other = {each.name: each.value for each in read_random_reads(path, "io_uring")}
    assert of_other == {"iops": 9000, "p50": 100_000, "p90": 120_000, "p99": 200_000}
    with pytest.raises(InvalidParameterError, match="rows of spdk, io_uring.*name one of them with"):
        read_random_reads(path, None)


def test_an_engine_is_refused_where_no_table_has_engines(here: Path, flashsim: Run) -> None:
    Path("figures.csv").write_text("operation,figure,value\nread,iops,9000\n")
    result = flashsim("device identify --figures figures.csv --engine spdk --out mine.toml")
    assert result.exit_code == 2 and result.stderr == "flashsim: --engine: spdk, but only a table of random reads has engines\n"


def test_figures_of_an_slc_cache_are_of_writes(tmp_path: Path) -> None:
    path, header = tmp_path / "figures.csv", "operation,order,size,state,figure,value"
    path.write_text(f"{header}\nwrite,sequential,1MiB,empty,slc_cache,2GB\nwrite,sequential,1MiB,cache-full,bandwidth,400MB/s\n")
    assert [(each.name, each.value, each.kind) for each in read(path)] == [
        ("slc_cache", 2e9, "empty slc_cache"), ("bandwidth", 4e8, "cache-full rate"),
    ]  # fmt: skip
    for row, words in (
        ("write,random,4KiB,cache-full,bandwidth,4MB/s", "writes in order fill a cache"),
        ("write,sequential,1MiB,cache-full,p99,4ms", "bandwidth alone"),
        ("read,sequential,1MiB,empty,slc_cache,2GB", "it is of writes"),
    ):
        path.write_text(f"{header}\n{row}\n")
        with pytest.raises(InvalidParameterError, match=words):
            read(path)


def fio(*jobs: dict[str, Any]) -> str:
    """JSON as fio writes it."""
    return json.dumps({"fio version": "fio-3.33", "global options": {"bs": "4k", "iodepth": "8"}, "jobs": list(jobs)})


def job(operation: str, rw: str, iops: float, **options: str) -> dict[str, Any]:
    percentiles = {"50.000000": 80_000, "99.000000": 200_000}
    shown = {"total_ios": 1000, "io_bytes": 4_096_000, "iops": iops, "clat_ns": {"percentile": percentiles}}
    none = {"total_ios": 0, "io_bytes": 0, "iops": 0.0, "clat_ns": {}}
    return {"read": none, "write": none, "job options": {"rw": rw, **options}, operation: shown}


def values_of(path: Path) -> dict[tuple[DriveLoad, str], float]:
    return {(each.load, each.name): each.value for each in read(path)}


def log(path: Path, *rows: tuple[int, int], direction: int = 0) -> None:
    path.write_text("".join(f"{time}, {value}, {direction}, 0, 0\n" for time, value in rows))


def test_jobs_of_fio_become_figures_and_their_logs_count_more(tmp_path: Path) -> None:
    path = tmp_path / "fio.json"
    writes = job("write", "randwrite", 20e3, write_bw_log="w", numjobs="2", log_avg_msec="100")
    path.write_text(fio(job("read", "randread", 50e3), job("write", "randtrim", 1.0), writes))
    load, later = DriveLoad(READ, depth=8), DriveLoad(WRITE, depth=16, state="steady")
    expected = {(load, "iops"): 50e3, (later, "iops"): 20e3}
    expected |= {(each, name): value for each in (load, later) for name, value in (("p50", 80e3), ("p99", 200e3))}
    with pytest.warns(FlashsimWarning, match="fio.json: job 2 is left out: its rw=randtrim is not a load of reads, writes or both"):
        assert values_of(path) == expected
    for thread in (3, 4):  # of the third job's two copies
        log(tmp_path / f"w_bw.{thread}.log", *((100 * row, 40_000 if row < 6 else 20_000) for row in range(1, 11)), direction=1)
    with pytest.warns(FlashsimWarning):
        assert values_of(path) == expected | {(later, "iops"): 10e3}
    log(tmp_path / "w_bw.4.log", *((100 * row, 40_000) for row in range(1, 11)))
    with pytest.raises(DamagedFileError, match="w_bw.4.log is not of writes alone, but job 3 of fio.json is"):
        read(path)
    (tmp_path / "w_bw.4.log").unlink()
    with pytest.raises(DamagedFileError, match="w_bw.4.log is not a log of fio"):
        read(path)


def test_a_log_of_requests_counts_them_and_one_of_means_tells_no_percentiles(tmp_path: Path) -> None:
    """Each line of the first has the bytes a second of one request, whose mean is no rate; the second has means of latencies."""
    path = tmp_path / "fio.json"
    options = {"write_bw_log": "a", "write_lat_log": "a"}
    path.write_text(fio(job("read", "randread", 50e3, **options)))
    log(tmp_path / "a_bw.1.log", *((time, 400_000 if time % 10 else 4000) for time in range(1001)))
    log(tmp_path / "a_clat.1.log", *((time, 1000 * time) for time in range(1000)))
    load = DriveLoad(READ, depth=8)
    assert values_of(path) == {(load, "iops"): 1000, (load, "p50"): 749_500, (load, "p99"): 994_010, (load, "p99.9"): 998_501}
    path.write_text(fio(job("read", "randread", 50e3, **options, log_avg_msec="1")))
    found = values_of(path)
    assert (found[load, "p50"], found[load, "p99"]) == (80e3, 200e3) and found[load, "iops"] == pytest.approx(
        (450 * 100_000 + 51 * 1000) / 501
    )


@with_each(
    ("options", "why"),
    [
        ({"rate": "10m"}, "its rate=10m shows more than the drive"),
        ({"thinktime": "100"}, "its thinktime=100 shows more"),
        ({"latency_target": "1ms"}, "its latency_target=1ms shows more"),
        ({"bssplit": "4k/50:8k/50"}, "its bssplit=4k/50:8k/50 shows more"),
        ({"rw": "read:8k"}, "its rw=read:8k is not a load of reads"),
        ({"random_distribution": "zipf:1.2"}, "its random_distribution=zipf:1.2 shows more"),
        ({"zonemode": "zbd"}, "its zonemode=zbd shows more"),
        ({"iodepth": "32"}, "less than half of its requests had iodepth outstanding"),
    ],
)
def test_a_job_that_shows_more_than_the_drive_is_left_out_with_a_word(options: dict[str, str], why: str, tmp_path: Path) -> None:
    path = tmp_path / "fio.json"
    odd = job("read", "randread", 50e3) | {"iodepth_level": {"1": 20.0, "8": 60.0, "16": 20.0}}
    odd["job options"] |= options
    path.write_text(fio(job("read", "randread", 9e3, iodepth="1", fsync="1"), odd))  # reads have nothing to flush
    with pytest.warns(FlashsimWarning, match=f"fio.json: job 2 is left out: {why}"):
        assert {load.depth for load, _ in values_of(path)} == {1}


def test_jobs_that_ran_together_count_together_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "fio.json"
    both = [job("read", "randread", iops) | {"groupid": 0, "jobname": name} for name, iops in (("a", 9e3), ("b", 7e3))]
    path.write_text(fio(*both))
    assert values_of(path)[DriveLoad(READ, depth=16), "iops"] == 16e3
    both[1]["read"]["clat_ns"]["percentile"]["99.000000"] *= 2
    path.write_text(fio(*both))
    assert {name for _, name in values_of(path)} == {"iops", "p50"}  # the 99 % of both lies somewhere between theirs
    path.write_text(
        fio(both[0], job("write", "randwrite", 5e3) | {"groupid": 0}, job("read", "randread", 3e3, iodepth="1") | {"groupid": 1})
    )
    with pytest.warns(FlashsimWarning, match="job 1, 2 is left out: jobs of other loads ran at the same time"):
        assert values_of(path)[DriveLoad(READ, depth=1), "iops"] == 3e3


@with_each(
    ("first", "second", "why"),
    [
        ({}, {"startdelay": "5"}, "its jobs began one after the other"),
        ({"startdelay": "1-5"}, {"startdelay": "1-5"}, "its jobs began one after the other"),
        ({}, {"wait_for": "a"}, "its jobs began one after the other"),
        ({}, {"runtime": 5000}, "its jobs ran for different times"),
        ({}, {"job_runtime": 20_000}, "its jobs ran for different times, or it has more of them"),
        ({}, {"groupid": 1}, "groups of jobs ran at the same time"),
        ({"direct": "1"}, {}, "jobs of other loads ran at the same time"),
    ],
)
def test_jobs_that_did_not_run_together_are_not_added(first: dict[str, Any], second: dict[str, Any], why: str, tmp_path: Path) -> None:
    """Two jobs of a group, both of 10 s of the 11 that fio ran; what they have in common is known to run at once."""
    path, jobs = tmp_path / "fio.json", list[dict[str, Any]]()
    for iops, more in ((9e3, {}), (7e3, {}), (9e3, first), (7e3, second)):
        runtime = more.get("runtime", 10_000)
        jobs.append(job("read", "randread", iops) | {"groupid": 0, "elapsed": 11, "job_runtime": runtime})
        jobs[-1]["read"]["runtime"] = runtime
        for key, value in more.items():
            (jobs[-1] if key in ("groupid", "job_runtime") else jobs[-1]["job options"])[key] = value
    path.write_text(fio(*jobs[:2]))
    assert values_of(path)[DriveLoad(READ, depth=16), "iops"] == 16e3
    path.write_text(fio(*jobs[2:]))
    with pytest.raises(DamagedFileError, match=rf"has no job that shows the drive alone \(job 1, 2: {why}"):
        read(path)


@with_each(
    ("common", "own", "is_direct"),
    [
        ({}, {}, False),
        ({}, {"direct": "1"}, True),
        ({}, {"buffered": "0"}, True),
        ({}, {"direct": "1", "buffered": "1"}, False),
        ({}, {"buffered": "1", "direct": "1"}, True),
        ({"direct": "1"}, {"buffered": "1"}, False),
        ({"direct": "0", "buffered": "1"}, {"direct": "1"}, True),
    ],
)
def test_the_page_cache_is_told_as_fio_goes_through_it(
    common: dict[str, str], own: dict[str, str], is_direct: bool, tmp_path: Path
) -> None:
    """Held against the flags with which fio 3.33 opens its file."""
    document = json.loads(fio(job("read", "randread", 9e3, **own)))
    document["global options"] |= common
    (tmp_path / "fio.json").write_text(json.dumps(document))
    assert {each.note == "" for each in read(tmp_path / "fio.json")} == {is_direct}


def test_total_latencies_stand_in_for_those_of_completion(tmp_path: Path) -> None:
    path, total = tmp_path / "fio.json", job("read", "randread", 50e3)
    total["read"]["lat_ns"] = total["read"].pop("clat_ns")
    path.write_text(fio(total))
    assert values_of(path)[DriveLoad(READ, depth=8), "p99"] == 200e3


#: Figures of files as fio 3.33 writes them, with its logs: depth, requests a second, 99 % (us) and what is noted, of reads and of writes.
CASES = {
    "copies-grouped": [(READ, 4, 40_000, 200, "")],
    "second-group": [(READ, 3, 12_000, 200, ""), (WRITE, 1, 3000, 200, "")],
    "averaged-latencies": [(READ, 1, 10_000, 4000, "")],
    "copies-apart": [(READ, 4, 40_000, 200, "")],
    "sync-engine-depth": [(READ, 1, 10_000, 200, "")],
    "buffered": [(READ, 1, 1_000_000, 1.2, "through the page cache: fio had no direct=1")],
    "note-before": [(READ, 1, 10_000, 200, "")],
    "status-interval": [(READ, 1, 10_000, 200, "")],
    "rw-with-count": [(READ, 1, 10_000, 200, "")],
}


@with_each("name", CASES)
def test_figures_of_fios_files_are_those_of_the_drive(name: str, test_data: Path) -> None:
    found = read(test_data / "cases" / "fio" / f"{name}.json")
    rows = [(each.load.operation, each.load.depth, each.value, each.note) for each in found if each.name == "iops"]
    latencies = [each.value / 1000 for each in found if each.name == "p99"]
    assert [(*row[:3], latency, row[3]) for row, latency in zip(rows, latencies, strict=True)] == CASES[name]


@pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")
def test_figures_of_fio_itself(tmp_path: Path) -> None:
    """Two copies in a group, then a writer: a synchronous engine has one request outstanding, and logs are named by thread."""
    words = "--ioengine=psync --bs=8k --iodepth=2 --size=1m --filename=f --write_lat_log=r --write_bw_log=r --output-format=json"
    words += " --output=out.json --group_reporting --name=r --rw=randread --numjobs=2 --name=w --stonewall --rw=randwrite --numjobs=1"
    subprocess.run(["fio", *words.split()], cwd=tmp_path, check=True, capture_output=True)
    reads, writes = (
        each[kind] for each, kind in zip(json.loads((tmp_path / "out.json").read_text())["jobs"], ("read", "write"), strict=True)
    )
    figures = {(each.load.operation, each.name): each for each in read(tmp_path / "out.json")}
    assert (figures[READ, "iops"].value, figures[WRITE, "iops"].value) == (reads["iops"], writes["iops"])  # logs of some ms tell no rate
    assert figures[READ, "iops"].load == DriveLoad(READ, 8 * KIB, depth=2)
    assert figures[WRITE, "iops"].load == DriveLoad(WRITE, 8 * KIB, depth=1, state="steady")
    logged = [np.loadtxt(tmp_path / f"r_clat.{thread}.log", delimiter=",", usecols=1)[64:] for thread in (1, 2, 3)]
    assert figures[READ, "p99"].value == np.percentile(np.concatenate(logged[:2]), 99)
    assert figures[WRITE, "p99"].value == np.percentile(logged[2], 99) and "page cache" in figures[WRITE, "p99"].note


JOBS = {
    "logged": "[bare]\nwrite_lat_log\n[late]\nstonewall\nnumjobs=2\nstartdelay=10ms-20ms\n",
    "overlapping": "[one]\ntime_based=1\nruntime=1200ms\n[other]\nnew_group\ntime_based=1\nruntime=1200ms\n",
}


@pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")
def test_figures_of_fio_itself_where_options_have_no_value_or_jobs_run_apart(tmp_path: Path) -> None:
    """The JSON does not tell of an option without a value: a log is named by its job, and a group may run beside another."""
    for name, jobs in JOBS.items():
        (tmp_path / f"{name}.fio").write_text("[global]\nfilename=f\nsize=1m\nbs=4k\nrw=randread\nioengine=psync\n" + jobs)
        subprocess.run(
            ["fio", f"{name}.fio", "--output-format=json", f"--output={name}.json"], cwd=tmp_path, check=True, capture_output=True
        )
    log = np.loadtxt(tmp_path / "bare_clat.1.log", delimiter=",", usecols=1)
    for rows, latency in ((log, np.percentile(log[len(log) // 2 :], 99)), (log[1:], None)):  # with a row less it is of another run
        np.savetxt(tmp_path / "bare_clat.1.log", [(1, row, 0) for row in rows], delimiter=",", fmt="%d")
        (tmp_path / "bare_lat.1.log").unlink(missing_ok=True)
        with pytest.warns(FlashsimWarning, match="job 2, 3 is left out: its jobs began one after the other"):
            (found,) = [each.value for each in read(tmp_path / "logged.json") if each.name == "p99"]
        shown = json.loads((tmp_path / "logged.json").read_text())["jobs"][0]["read"]["clat_ns"]["percentile"]["99.000000"]
        assert found == (shown if latency is None else latency)
    with pytest.raises(DamagedFileError, match="groups of jobs ran at the same time"):
        read(tmp_path / "overlapping.json")


def test_a_third_of_each_kind_is_kept_back() -> None:
    figures = [DriveFigure(DriveLoad(operation, depth=depth), "iops", 1.0) for operation in (READ, WRITE) for depth in range(1, 13)]
    kept = hold_back(figures, 1)
    assert sum(kept[:12]) == sum(kept[12:]) == 4
    assert kept != hold_back(figures, 2)


HEAD = "operation,depth,figure,value\n"
BAD = {
    "{}": "is JSON, but not of fio",
    '{"fio version": "3", "jobs": []}': "has no job that shows the drive alone",
    '{"fio version": "3", "jobs": [{"read": {}, "job options": {"rw": "read"}}]}': "a job of fio lacks 'total_ios'",
    '{"fio version"': "neither fio's output nor a table",
    "": "has none",
    HEAD: "has none",
    f"{HEAD}read,1,iops,9000\n": "figures: 1, but a third is kept back, and at least 6 are needed",
    f"{HEAD}read,1,p99,9000\n": "figure 1: value: '9000', but a number with a unit is needed",
    "operation,size,figure,value\nread,4096,iops,9000\n": "figure 1: size: '4096', but a number with a unit is needed",
    f"{HEAD}read,1,bandwidth,20MB\n": "'20MB', but bytes a second are needed",
    f"{HEAD}read,1,iops,many\n": "'many', but a number is needed",
    f"{HEAD}read,0,iops,9000\n": "depth: 0.0, but a whole number from 1 to 4096",
    "operation,reads,figure,value\nread,1,iops,9000\n": "reads: 1.0, but a share above 0 and below 1 is needed",
    "operation,reads,state,figure,value\nread,0.5,empty,iops,9000\n": "state: empty, but a mixed load reads what was written before",
    f"{HEAD}erase,1,iops,9000\n": "operation: 'erase' is unknown",
    f"{HEAD}read,1,iops,-3\n": "it must be above 0",
    "operation,speed\nread,9\n": "column: 'speed' is unknown",
    "operation,figure\nread,iops\n": "value: missing",
}


@with_each("text", BAD)
def test_what_has_no_figures_is_refused_in_one_line(text: str, here: Path, flashsim: Run) -> None:
    Path("figures.csv").write_text(text)
    result = flashsim("device identify --figures figures.csv --out mine.toml --json mine.json")
    assert result.exit_code == 2 and result.stderr.count("\n") == 1 and BAD[text] in result.stderr, result.stderr
    assert [path.name for path in here.iterdir()] == ["figures.csv"]


def test_what_is_no_flash_drive_or_no_file_is_refused(here: Path, flashsim: Run) -> None:
    Path("figures.csv").write_text(HEAD + "".join(f"read,{depth},iops,9000\n" for depth in range(1, 7)))
    for line, message in (
        ("--figures missing.csv --out mine.toml", "figures: cannot read missing.csv"),
        ("--figures figures.csv --out mine.txt", "--out: mine.txt"),
        ("--figures figures.csv --out mine.toml --preset toshiba-5400-320gb", "--preset: toshiba-5400-320gb is not a flash drive"),
    ):
        result = flashsim(f"device identify {line}")
        assert result.exit_code == 2 and result.stderr.count("\n") == 1 and message in result.stderr, result.stderr
    assert [path.name for path in here.iterdir()] == ["figures.csv"]
