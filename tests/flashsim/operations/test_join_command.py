"""``flashsim join``: its rows, its trace, its JSON, and what the formula says beside it."""

from __future__ import annotations

import json
import sqlite3
import threading
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import flashsim as fs
from flashsim.core.request import WRITE
from flashsim.device import presets
from flashsim.operations.face.join import JoinOutcome
from flashsim.storage.page import PAGE_FORMATS
from tests.cases import with_each
from tests.commands import SMALL_JOIN, Run


def test_rows_are_those_of_duckdb_with_clashing_names_resolved(here: Path, flashsim: Run) -> None:
    r = pa.table({"id": [1, 2, 2, None, 7], "name": ["a", "b", "c", "d", "e"]})
    s = pa.table({"name": ["v", "w", "x", "y"], "ref": [2, 1, 9, None], "name_s": [1.5, 2.5, 3.5, 4.5]})
    pq.write_table(r, here / "r.parquet")
    pq.write_table(s, here / "s.parquet")
    line = "join hybrid-hash --r {} --s {} --on {} --device ocz-core-60gb --memory 64KiB --page-size 1KiB --out {}"
    assert flashsim(line.format("r.parquet", "s.parquet", "id=ref", "rs.parquet")).exit_code == 0
    rows = pq.read_table(here / "rs.parquet")
    assert rows.column_names == ["id", "name", "name_s_s", "name_s"]
    wanted = duckdb.sql("select r.id, r.name, s.name, s.name_s from r join s on r.id = s.ref order by all").fetchall()
    assert sorted(tuple(row.values()) for row in rows.to_pylist()) == wanted


def test_the_larger_relation_may_come_first(here: Path, flashsim: Run) -> None:
    sides = "--r do2009:orders@0.01 --s do2009:customer@0.01 --on o_custkey=c_custkey"
    assert flashsim(f"join bnl {sides} --device ocz-core-60gb --memory 256KiB --out a.parquet").exit_code == 0
    rows = pq.read_table(here / "a.parquet")
    assert rows.column_names == ["o_custkey", "padding", "padding_s"]
    assert rows.num_rows == 15_000
    assert set(map(len, rows["padding"].to_pylist())) == {90} and set(map(len, rows["padding_s"].to_pylist())) == {130}


@pytest.mark.parametrize("algorithm", ["bnl", "sort-merge", "external-sort-merge", "simple-hash", "grace-hash", "hybrid-hash"])
@pytest.mark.parametrize("device", ["ocz-core-60gb", "toshiba-5400-320gb"])
def test_json_trace_and_rows_agree(algorithm: str, device: str, here: Path, flashsim: Run) -> None:
    line = SMALL_JOIN.replace("bnl", algorithm).replace("ocz-core-60gb", device)
    result = flashsim(f"{line} --json j.json --trace t.parquet --out o.parquet")
    assert result.exit_code == 0, result.output
    told = json.loads((here / "j.json").read_text())
    machine = told["machines"][0]
    total = machine["total"]
    trace = pq.read_table(here / "t.parquet")
    assert trace.num_rows >= total["reads"] + total["writes"]  # what lies in several places on the device takes several requests there
    assert sum(trace["length"].to_pylist()) == 8192 * (total["pages_read"] + total["pages_written"])
    assert machine["result_rows"] == pq.read_metadata(here / "o.parquet").num_rows == 15_000
    assert sum(phase["io_time"] for phase in machine["phases"]) == total["io_time"] > 0
    assert [row["phase"] for row in machine["comparison"]] == [phase["name"] for phase in machine["phases"]] + ["total"]
    assert told["provenance"]["parameters"]["algorithm"] == algorithm
    assert abs(machine["comparison"][-1]["pages_difference"]) < 0.1
    summary = flashsim("trace info t.parquet --json s.json")
    assert summary.exit_code == 0
    assert json.loads((here / "s.json").read_text())["operations"]["read"]["bytes"] == 8192 * total["pages_read"]


def test_block_nested_loops_counts_are_the_formula_s(here: Path, flashsim: Run) -> None:
    assert flashsim(f"{SMALL_JOIN} --json j.json").exit_code == 0
    total = json.loads((here / "j.json").read_text())["machines"][0]["comparison"][-1]
    assert (total["requests"], total["pages"]) == (total["formula_requests"], total["formula_pages"])


def test_a_sqlite_column_of_several_types_is_written_as_text(here: Path, flashsim: Run) -> None:
    with closing(sqlite3.connect("mixed.sqlite")) as database:
        database.execute("create table t (k integer primary key, v)")
        database.executemany("insert into t values (?, ?)", [(1, 7), (2, "x"), (3, b"\x0a"), (4, 2.5), (5, None)])
        database.commit()
    line = "join bnl --r mixed.sqlite:t --s mixed.sqlite:t --on k --device ocz-core-60gb --memory 64KiB --out o.parquet"
    assert flashsim(line).exit_code == 0
    rows = sorted((row["k"], row["v"], row["v_s"]) for row in pq.read_table(here / "o.parquet").to_pylist())
    assert rows == [(key, text, text) for key, text in enumerate(["7", "x", "X'0A'", "2.5", None], start=1)]


def test_pages_of_buckets_are_told_where_they_are_smaller(here: Path, flashsim: Run) -> None:
    line = SMALL_JOIN.replace("bnl", "grace-hash").replace("256KiB", "64KiB")
    for options, size in (("", 8192), ("--partition n-hash", 4096), ("--partition n-hash --sub-buffer 2KiB", 2048)):
        result = flashsim(f"{line} {options} --json j.json --trace t.parquet --force")
        assert result.exit_code == 0, result.output
        told = json.loads((here / "j.json").read_text())
        assert told["bucket_page_size"] == size and told["allocation"]["output"] == 1
        assert ("buckets on pages of" in result.stdout) == (size < 8192)
        trace = pq.read_table(here / "t.parquet", columns=["operation", "length"])
        assert min(trace.filter(pc.equal(trace["operation"], WRITE))["length"].to_pylist()) == size


def test_page_sized_io_makes_a_request_a_page(here: Path, flashsim: Run) -> None:
    assert flashsim(f"{SMALL_JOIN} --io page --json j.json").exit_code == 0
    total = json.loads((here / "j.json").read_text())["machines"][0]["comparison"][-1]
    assert total["requests"] == total["pages"] == total["formula_requests"]


def test_buffers_may_be_divided_for_another_device(here: Path, flashsim: Run) -> None:
    small = SMALL_JOIN.replace("256KiB", "96KiB")
    assert flashsim(f"{small} --json own.json").exit_code == 0
    assert flashsim(f"{small} --buffers-for toshiba-5400-320gb --json hdd.json").exit_code == 0
    assert flashsim(f"{small.replace('ocz-core-60gb', 'toshiba-5400-320gb')} --json there.json").exit_code == 0
    own, hdd, there = (json.loads((here / f"{name}.json").read_text())["allocation"] for name in ("own", "hdd", "there"))
    assert own != hdd == there


def test_without_a_cpu_work_takes_no_time(here: Path, flashsim: Run) -> None:
    assert flashsim(f"{SMALL_JOIN} --cpu none --json j.json").exit_code == 0
    total = json.loads((here / "j.json").read_text())["machines"][0]["total"]
    assert total["user_time"] == total["kernel_time"] == 0


def test_every_device_has_the_cpu_of_its_year_and_the_join_names_it(here: Path, flashsim: Run) -> None:
    devices = {"ocz-core-60gb": "pentium-d-2009", "samsung-980-pro-1tb": "epyc-7003-2021"}
    line = f"{SMALL_JOIN} --buffers-for ocz-core-60gb"
    both = flashsim(f"{line} --device samsung-980-pro-1tb --json both.json")
    assert both.exit_code == 0 and not both.stderr, both.output
    assert "CPU: pentium-d-2009 for ocz-core-60gb, epyc-7003-2021 for samsung-980-pro-1tb." in " ".join(both.stdout.split())
    told = json.loads((here / "both.json").read_text())
    assert told["setting"]["cpu"] == "by-year" and [machine["cpu"] for machine in told["machines"]] == [*devices.values()]
    result = fs.join(
        "do2009:customer@0.01", "do2009:orders@0.01", "c_custkey=o_custkey", algorithm="bnl", device=[*devices], memory="256KiB"
    )
    assert result.title.endswith(", CPU pentium-d-2009 and epyc-7003-2021")
    assert dict(result.summary()[["device", "cpu"]].values) == devices
    assert all(f"{device}\nCPU {cpu}" in _labels(result) for device, cpu in devices.items())
    for number, (device, cpu) in enumerate(devices.items()):
        for given in ("", f" --cpu {cpu}"):
            alone = flashsim(f"{line.replace('--device ocz-core-60gb', f'--device {device}')}{given} --json one.json --force")
            assert alone.exit_code == 0 and f"CPU: {cpu}." in " ".join(alone.stdout.split()), alone.output
            one = json.loads((here / "one.json").read_text())
            assert one["setting"]["cpu"] == cpu and one["machines"][0] == told["machines"][number]


def _labels(result: JoinOutcome) -> list[str]:
    return [label.get_text() for label in result._draw().axes[0].get_xticklabels()]


def test_a_cpu_of_another_decade_is_told_in_a_line(flashsim: Run) -> None:
    done = flashsim(f"{SMALL_JOIN.replace('ocz-core-60gb', 'samsung-980-pro-1tb')} --cpu pentium-d-2009")
    assert done.exit_code == 0 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("flashsim: warning: cpu: pentium-d-2009 is of 2009, but samsung-980-pro-1tb of 2020: ")


def test_runs_of_a_sweep_are_kept_by_the_cpu_that_priced_them(here: Path) -> None:
    text = (Path(presets.__file__).parent / "presets" / "ocz-core-60gb.toml").read_text()
    r, s = pa.table({"k": range(100)}), pa.table({"k": range(500)})
    told = []
    for year in (2008, None, 2020):
        if year is not None:
            (here / "mine.toml").write_text(text.replace("year = { value = 2008", f"year = {{ value = {year}"))
        swept = fs.sweep(fs.join, r=r, s=s, on="k", device=str(here / "mine.toml"), memory=["64KiB", "128KiB"], jobs=1)
        told.append((*swept.summary().cpu, swept.title.partition("), ")[2]))
    first, again, later = told
    assert first[:2] == again[:2] == ("pentium-d-2009", "pentium-d-2009") and later[:2] == ("epyc-7003-2021", "epyc-7003-2021")
    assert [each[2].partition(" ")[0] for each in told] == ["0", "2", "0"]


def test_existing_outputs_are_replaced_only_with_force(here: Path, flashsim: Run) -> None:
    assert flashsim(f"{SMALL_JOIN} --json j.json").exit_code == 0
    first = (here / "j.json").read_bytes()
    assert flashsim(f"{SMALL_JOIN} --json j.json").exit_code == 2
    assert (here / "j.json").read_bytes() == first
    assert flashsim(f"{SMALL_JOIN} --json j.json --force").exit_code == 0
    assert sorted(path.name for path in here.iterdir()) == ["j.json"]


@pytest.mark.parametrize("page_format", PAGE_FORMATS.names())
def test_a_real_file(page_format: str, here: Path, flashsim: Run) -> None:
    line = SMALL_JOIN.replace("ocz-core-60gb", "./disk.img").replace("bnl", "grace-hash") + f" --page-format {page_format}"
    result = flashsim(f"{line} --allow-write --trace real.parquet --out real-rows.parquet")
    if "does not do direct I/O" in result.stderr:
        pytest.skip("the file system of temporary files does not do direct I/O")
    assert result.exit_code == 0, result.output
    assert not (here / "disk.img").exists()
    simulated = line.replace("./disk.img", "ocz-core-60gb") + " --buffers-for toshiba-5400-320gb --trace t.parquet --out rows.parquet"
    assert flashsim(simulated).exit_code == 0
    assert pq.read_table(here / "real-rows.parquet").equals(pq.read_table(here / "rows.parquet"))
    columns = ["operation", "offset", "length", "label"]
    real, virtual = (pq.read_table(here / name, columns=columns) for name in ("real.parquet", "t.parquet"))
    assert real.to_pylist() == virtual.to_pylist()


@pytest.mark.parametrize(
    ("options", "phases"),
    [
        ("--fetch page-based", ["project", "digest sort-merge: sort", "digest sort-merge: merge", "index", "fetch"]),
        ("--first external-sort-merge --fetch graph-based --k 2 --digests-stored", ["digest external-sort-merge: sort"]),
    ],
)
def test_a_digest_join_on_a_real_file_and_its_trace_replayed_there(options: str, phases: list[str], here: Path, flashsim: Run) -> None:
    """Rows, phases that add up, and a recorded trace that asks a real file for the same bytes again."""
    line = SMALL_JOIN.replace("bnl", "digest").replace("--device ocz-core-60gb", "--device ./disk")
    result = flashsim(f"{line} {options} --allow-write --json j.json --trace t.parquet --out o.parquet")
    if "does not do direct I/O" in result.stderr:
        pytest.skip("the file system of temporary files does not do direct I/O")
    assert result.exit_code == 0, result.output
    machine = json.loads((here / "j.json").read_text())["machines"][0]
    assert [phase["name"] for phase in machine["phases"]][: len(phases)] == phases
    assert pq.read_metadata(here / "o.parquet").num_rows == 15_000
    simulated = flashsim(f"{SMALL_JOIN.replace('bnl', 'digest')} {options} --buffers-for toshiba-5400-320gb --json s.json")
    assert simulated.exit_code == 0, simulated.output
    told = json.loads((here / "s.json").read_text())["machines"][0]
    counts = [[(phase["name"], phase["reads"], phase["writes"], phase["work"]) for phase in one["phases"]] for one in (machine, told)]
    assert counts[0] == counts[1]
    replayed = flashsim("trace replay t.parquet --device ./disk --allow-write --pace asap --engine builtin --json r.json")
    assert replayed.exit_code == 0, replayed.output
    operations = json.loads((here / "r.json").read_text())["operations"]
    for kind in ("read", "write"):
        assert operations[kind]["bytes"] == 8192 * machine["total"][f"pages_{'read' if kind == 'read' else 'written'}"]


PARA_HASH = SMALL_JOIN.replace("bnl", "grace-hash").replace("ocz-core-60gb", "intel-x25e-64gb") + " --partition para-hash"


def test_strands_overlap_and_give_the_same_rows(here: Path, flashsim: Run) -> None:
    for strands in (1, 4):
        line = f"{PARA_HASH} --strands {strands} --cores 4 --json {strands}.json --out {strands}.parquet --trace {strands}.trace.parquet"
        result = flashsim(line)
        assert result.exit_code == 0, result.output
    assert "Busy: 4 host cores" in result.output
    one, four = (json.loads((here / f"{strands}.json").read_text())["machines"][0] for strands in (1, 4))
    assert four["elapsed"] < 0.7 * sum(one["total"][time] for time in ("io_time", "user_time", "kernel_time"))
    assert [strand["strand"] for strand in four["strands"]] == ["main", "strand 1", "strand 2", "strand 3", "strand 4"]
    assert sum(phase["elapsed"] for phase in four["phases"]) == four["elapsed"]
    assert four["cores"] == {"host": 4} and 0 < four["core_shares"]["host"] < 1 and 0 < four["device_shares"][0] <= 1
    assert four["comparison"][-1]["formula_io"] is None and one["comparison"][-1]["formula_io"] > 0
    rows = [sorted(map(repr, pq.read_table(here / f"{strands}.parquet").to_pylist())) for strands in (1, 4)]
    assert rows[0] == rows[1] and len(rows[0]) == 15_000
    assert pq.read_metadata(here / "4.trace.parquet").num_rows >= four["total"]["reads"] + four["total"]["writes"]


@with_each(
    ("told", "message"),
    [
        ("--strands 0", "strands: 0, but it must be at least 1"),
        ("--strands two", "--strands: 'two', but a whole number of at least 1 is needed"),
        ("--strands 900", "strands: 900, but each needs a page to read and one for each of"),
        ("--strands 2 --partition traditional", "strands: 2, but partition method traditional does not take it"),
        ("--cores 2", "--cores: it needs --strands"),
        ("--cores 0", "cores: 0, but it must be at least 1"),
        ("--cores 1.5", "--cores: '1.5', but a whole number of at least 1 is needed"),
        ("--strands 2 --cores 2 --cpu none", "cores: 2, but without a CPU preset work takes no time"),
    ],
)
def test_strands_and_cores_that_cannot_be_are_refused(told: str, message: str, here: Path, flashsim: Run) -> None:
    result = flashsim(f"{PARA_HASH} {told} --json j.json --out o.parquet --trace t.parquet")
    assert result.exit_code == 2
    assert message in result.stderr and result.stderr.count("\n") == 1
    assert not list(here.iterdir())


FAILING = '''"""Strands of which the second fails."""

import numpy as np

from algorithms.partitioning.para_hash import OPTIONS, check
from algorithms.files import together
from flashsim.execution.requests import Latch, Read, Release


def distribute(file, files, buffers, route, parameters):
    def reads(number):
        for page in range(file.pages):
            if number == page == 2:
                yield Release(Latch("index"))
            yield Read(file, np.array([page]), np.array([1]))

    yield from together([reads(number) for number in range(parameters.strands)])
'''
CROSSING = '''"""Strands that wait for each other's latches."""

from algorithms.partitioning.para_hash import OPTIONS, check
from algorithms.files import together
from flashsim.execution.requests import Acquire, Latch, Sleep


def distribute(file, files, buffers, route, parameters):
    def crosses(first, second):
        yield Acquire(first)
        yield Sleep(10_000_000)
        yield Acquire(second)

    latches = Latch("left"), Latch("right")
    yield from together([crosses(*latches), crosses(*latches[::-1])])
'''
PROBLEMS = {
    "release: index, but strand 3 does not hold this latch": FAILING,
    "strand 1 waits for latch right, which strand 2 holds; strand 2 waits for latch left, which strand 1 holds": CROSSING,
}


@pytest.mark.parametrize("problem", PROBLEMS, ids=["fails", "deadlock"])
@pytest.mark.parametrize("device", ["intel-x25e-64gb", "./disk.img"])
def test_a_strand_that_fails_ends_the_run_and_leaves_no_file(device: str, problem: str, here: Path, flashsim: Run) -> None:
    (here / "failing.py").write_text(PROBLEMS[problem])
    line = PARA_HASH.replace("para-hash", "./failing.py").replace("intel-x25e-64gb", device)
    allowed = "--allow-write" if device.startswith(".") else ""
    result = flashsim(f"{line} --strands 4 {allowed} --json j.json --out o.parquet --trace t.parquet")
    if "does not do direct I/O" in result.stderr:
        pytest.skip("the file system of temporary files does not do direct I/O")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].endswith(problem)
    assert {path.name for path in here.iterdir()} <= {"failing.py", "__pycache__"}
    assert not any(thread.name.startswith("strand ") for thread in threading.enumerate())


@pytest.mark.deep
def test_strands_on_a_real_file_give_the_same_rows(here: Path, flashsim: Run) -> None:
    assert flashsim(f"{PARA_HASH} --strands 3 --out simulated.parquet").exit_code == 0
    line = PARA_HASH.replace("intel-x25e-64gb", "./disk.img") + " --strands 3 --allow-write --json j.json --out real.parquet"
    result = flashsim(line)
    if "does not do direct I/O" in result.stderr:
        pytest.skip("the file system of temporary files does not do direct I/O")
    assert result.exit_code == 0, result.output
    rows = [sorted(map(repr, pq.read_table(here / f"{name}.parquet").to_pylist())) for name in ("simulated", "real")]
    assert rows[0] == rows[1]
    run = json.loads((here / "j.json").read_text())["machines"][0]
    assert len(run["strands"]) == 4 and run["elapsed"] > 0 and 0 < run["device_shares"][0] <= 1
    refused = flashsim(line.replace("real.parquet", "r.parquet").replace("j.json", "k.json") + " --cores 2")
    assert refused.exit_code == 2 and "cores: 2, but a real device's strands have this machine's" in refused.stderr


def test_types_of_text_files_are_named_by_an_option(here: Path, flashsim: Run) -> None:
    """On the command and in Python, for both relations or for one; what they do not fit is one line."""
    (here / "r.csv").write_text("id,price\n007,1.50\n1E3,2.50\n,3\n")
    pq.write_table(pa.table({"id": [7.0, 1000.0, 8.0], "name": ["a", "b", "c"]}), here / "s.parquet")
    line = "join grace-hash --r r.csv --s s.parquet --on id --device ocz-core-60gb --memory 64KiB"
    refusal = flashsim(line)
    assert refusal.exit_code == 2 and "--types id=double names its type" in refusal.stderr and len(refusal.stderr.splitlines()) == 1
    named = flashsim(f"{line} --types id=double,price=decimal(4,2) --out o.parquet")
    assert named.exit_code == 0, named.output
    rows = pq.read_table(here / "o.parquet")
    assert sorted(map(tuple, (row.values() for row in rows.to_pylist()))) == [(7.0, Decimal("1.50"), "a"), (1000.0, Decimal("2.50"), "b")]
    by_relation = flashsim(f"{line} --types r.id=double --types price=text --out p.parquet")
    assert by_relation.exit_code == 0 and set(pq.read_table(here / "p.parquet")["price"].to_pylist()) == {"1.50", "2.50"}
    for types, message in (
        ("id=int64", "r: column id: '1E3' is not a value of type int64"),
        ("id=int", "--types: 'int', but types are"), ("name=text", "'name' is unknown"),
        ("id", "must read COLUMN=TYPE"), ("id=text,id=int64", "id is given twice"),
    ):  # fmt: skip
        refusal = flashsim(f"{line} --types {types}")
        assert refusal.exit_code == 2 and message in refusal.stderr and len(refusal.stderr.splitlines()) == 1, refusal.stderr
    joined = fs.join("r.csv", "s.parquet", on="id", algorithm="bnl", device="ocz-core-60gb", memory="64KiB", types={"id": "double"})
    assert len(joined.rows()) == 2 and joined.provenance["parameters"]["types"] == {"id": "double"}
    days = here / "days.csv"
    days.write_text("day\n1994-01-01\n1995-01-01\n")
    query = "SELECT day FROM t WHERE day < DATE '1995-01-01'"
    assert len(fs.smart(query, table={"t": days}, device="samsung-smart-400gb", types="t.day=date").rows()) == 1


def test_rows_are_written_with_checksums(here: Path, flashsim: Run) -> None:
    """A bit that flips in them is found when they are read."""
    pq.write_table(pa.table({"id": range(2000)}), here / "t.parquet")
    join = "join bnl --r t.parquet --s t.parquet --on id --device ocz-core-60gb --memory 64KiB --out j.parquet"
    smart = 'smart run "SELECT id FROM t" --table t=t.parquet --device samsung-smart-400gb --out s.parquet'
    for line, name in ((join, "j.parquet"), (smart, "s.parquet")):
        assert flashsim(line).exit_code == 0
        whole = bytearray((here / name).read_bytes())
        whole[pq.ParquetFile(here / name).metadata.row_group(0).column(0).total_compressed_size // 2] ^= 1
        (here / name).write_bytes(whole)
        with pytest.raises(OSError, match="CRC"):
            pq.read_table(here / name, page_checksum_verification=True)


@pytest.mark.deep
def test_a_sweep_takes_types_by_column(here: Path) -> None:
    (here / "r.csv").write_text("id\n007\n8\n")
    given = {"s": pa.table({"id": [7, 8]}), "on": "id", "device": "ocz-core-60gb", "algorithm": "bnl", "jobs": 1}
    swept = fs.sweep(fs.join, r="r.csv", types={"id": "int64"}, memory=["64KiB", "128KiB"], **given)
    assert swept.summary()["rows"].tolist() == [2, 2]


def test_joins_that_take_no_time_are_said_to() -> None:
    """Empty relations without a CPU preset, on one device and on two."""
    empty = pd.DataFrame({"key": pd.Series(dtype="int64")})
    for devices in (["ocz-core-60gb"], ["ocz-core-60gb", "samsung-980-pro-1tb"]):
        lines = [str(part) for part in fs.join(empty, empty, "key", device=devices, memory="64KiB", cpu="none").printout()]
        assert any("takes 0 s" in line or "takes no time" in line for line in lines), lines
