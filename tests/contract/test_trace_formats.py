"""What every trace format does, whatever a file looks like."""

from __future__ import annotations

import struct
import warnings
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pyarrow as pa
import pytest

from flashsim.core.errors import DamagedFileError, FlashsimError, InvalidParameterError, MissingFileError, UnknownNameError
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, READ, TRIM, WRITE
from flashsim.testing.contracts.format import PACKERS, FormatContract, example_of, is_refused, table
from tests.contract.members import each_of
from traces.file.conversion import convert
from traces.file.page_trace import page_trace
from traces.file.schema import column, make_batch
from traces.format import FORMATS, recognise
from traces.format.base import basis, candidates, doubts, load_format, load_writable, writable
from traces.summary.information import describe


@each_of(FORMATS)
class TestFormats(FormatContract):
    """Every member."""

    def requests_end(self, lines: list[bytes]) -> int:
        return next(number for number, line in enumerate(lines) if line.startswith(b"CPU")) if self.member == "blkparse" else len(lines)


#: A format of one's own, a table of columns of which none is a device.
WITHOUT_DEVICE = """
from traces.format._columns import ColumnsOfText

columns = [{"name": name, "holds": name} for name in ("time", "offset", "length")]
columns.append({"name": "operation", "holds": "operation", "words": {"R": "read", "W": "write"}})
table = {"title": "no device", "separator": ",", "pattern": r"\\d+,\\d+,\\d+,[RW]", "columns": columns}
member = ColumnsOfText("own", table | {"example": "5,0,512,R\\n", "requests": [["read", 0, 512, 5]]})
globals().update({name: getattr(member, name) for name in dir(member) if not name.startswith("_")})
"""


def contract_of(name: str) -> FormatContract:
    return type("Case", (FormatContract,), {"member": name})()


def test_a_format_without_devices_says_that_they_are_lost(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(WITHOUT_DEVICE)
    contract = contract_of(str(tmp_path / "own.py"))
    contract.test_its_files_are_recognised_and_no_others()
    contract.test_requests_are_what_the_example_says()
    contract.test_what_is_written_comes_back()


@pytest.mark.parametrize("name", writable())
def test_a_format_that_is_wrong_on_devices_breaks_the_contract(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says that it holds them and does not, or the other way round."""
    member = load_writable(name)
    monkeypatch.setattr(member, "CARRIES", member.CARRIES ^ {"device"})
    with pytest.raises(AssertionError, match=r"device is \[|a conversion says that"):
        contract_of(name).test_what_is_written_comes_back()


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("formats")
    paths = {name: folder / f"{name}.trace" for name in FORMATS.names()}
    for name, path in paths.items():
        path.write_bytes(example_of(name))
    return paths


@pytest.mark.parametrize("name", FORMATS.names())
def test_packed_files_are_recognised(name: str, tmp_path: Path) -> None:
    """But of Parquet's files, and folders of calls, which pack their own parts."""
    for pack in PACKERS.values():
        (tmp_path / "packed").write_bytes(pack(example_of(name)))
        assert candidates(tmp_path / "packed") == ([] if name in ("parquet", "calls") else [name])


@pytest.mark.parametrize("name", ["msr", "mqsim", "csv"])
def test_foreign_line_ends_are_read(name: str, examples: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "windows").write_bytes(examples[name].read_bytes().replace(b"\n", b"\r\n"))
    assert table(tmp_path / "windows").equals(table(examples[name]))


@pytest.mark.parametrize("lines", [4, pytest.param(7, marks=pytest.mark.deep)])
def test_a_capture_that_is_cut_short_is_read_up_to_there_with_a_word(lines: int, examples: dict[str, Path], tmp_path: Path) -> None:
    """Cut after each byte in turn: the warning names the byte where the event begins that is not whole."""
    data, cut = examples["blkparse"].read_bytes(), tmp_path / "cut"
    data = b"".join(data.splitlines(keepends=True)[:lines])
    begins = [0] + [at + 1 for at, byte in enumerate(data) if byte == 10]
    requests, warned = {0: 0}, 0
    for last in begins[2:]:
        cut.write_bytes(data[:last])
        requests[last] = table(cut, "blkparse").num_rows
    for keep in range(begins[2], len(data)):
        cut.write_bytes(data[:keep])
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = table(cut, "blkparse")
        last = max(begin for begin in begins if begin <= keep)
        assert found.num_rows - requests[last] in ({0} if said else {0, 1})
        assert bool(said) <= (keep not in begins)
        assert all(f"at byte {last}: it was read up to there" in str(warning.message) for warning in said)
        warned += bool(said)
    assert warned > (len(data) - begins[2]) // 2
    cut.write_bytes(data[: begins[1] // 2])
    with pytest.raises(DamagedFileError, match="cut short|no event|byte 0"):
        table(cut, "blkparse")


def test_whole_numbers_that_may_be_milliseconds_or_nanoseconds_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "whole"
    for text in ("7 0 64 8 1\n", "0 0 64 8 1\n7 0 128 8 0\n15 0 64 8 1\n", "0 0 64 8 1\n7000 0 128 8 0\n"):
        path.write_text(text)
        with pytest.raises(DamagedFileError, match="it could be disksim-ascii or mqsim; name it with --format"):
            recognise(path)
        times = [int(line.split()[0]) for line in text.splitlines()]
        for name, step in (("disksim-ascii", 10**6), ("mqsim", 1)):
            assert table(path, name).column("arrival").to_pylist() == [time * step for time in times]


def test_columns_are_told_by_name_or_by_options(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text('"Time (ms)";"Start Sector";"Sectors";"RW";"Response_us";"Host"\n1.5;8;16;w;250;b\n2;0;1;R;;a\n2;0;1;R;0.5;b\n')
    found = table(path).to_pydict()
    assert recognise(path) == "csv"
    assert found["arrival"] == [1_500_000, 2_000_000, 2_000_000] and found["completed"] == [1_750_000, None, 2_000_500]
    assert (found["offset"], found["length"], found["operation"]) == ([4096, 0, 0], [8192, 512, 512], [WRITE, READ, READ])
    assert (found["device"], found["label"]) == ([0, 1, 0], ["b", "a", "b"])
    path.write_text("3,2,1,7,Y\n4,1,2,9,N\n")
    given = table(path, "csv:time=1:s,offset=2:4KiB,length=3:MiB,operation=5:Y/N,device=4").to_pydict()
    assert given["arrival"] == [3 * 10**9, 4 * 10**9] and given["offset"] == [8192, 4096] and given["operation"] == [READ, WRITE]
    assert given["length"] == [2**20, 2**21] and given["device"] == [7, 9]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("time,offset,size\n1,2,3\n", "", "time has no unit; name one with --columns time=time:ms"),
        ("lba,offset,size\n1,2,3\n", "", "lba or offset could be the offset"),
        ("a,b\n1,2\n", "", "no column is the offset"),
        ("a,a\n1,2\n", "", "two columns have the same name"),
        ("a,b\n1,2\n", "offset=c:bytes", "columns: offset=c, but .* has a, b"),
        ("a,b\n1,2\n", "offset=a:ells", "columns: 'offset=a:ells', but a unit is needed, of "),
        ("a,b\n1,2\n", "offset=a:bytes,length=a:bytes", "no two roles"),
        ("a,b\n1,2\n", "where=a", "columns: 'where=a'"),
        ("offset,size,op\n1,2,jump\n", "", "line 2: op is not an operation"),
        ("offset,size\n1,\n", "", "line 2: size is empty"),
        ("offset,size,op\n1,0,R\n", "", "line 2: size: it moves no byte"),
        ("offset,size\n1,2\n1,x\n", "", "line 3: column size: 'x' is not a whole number"),
        ('offset,size,file\n1,2,a\n1,2,"b\n1,2,c\n1,2,d"\n', "", "line 5"),
        ("offset,size,file\n1,2,\x80\n", "", "line 2"),
        ("timestamp,offset,size\n2023-01-01 00:00:00,1,2\n2023-13-01 00:00:00,1,2\n", "", "line 3: timestamp is not a date and time"),
        ("offset,size_kib\n1,0.0001\n", "", "line 2: size_kib must be whole bytes"),
        ("offset,size\n1,2\n1,2,3\n", "", "line 3"),
    ],
)
def test_tables_that_say_too_little_are_refused_by_column_or_line(text: str, options: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "t").write_text(text, encoding="latin-1")
    with pytest.raises(FlashsimError, match=message):
        table(tmp_path / "t", f"csv:{options}" if options else "csv")


def test_both_versions_of_vscsi_are_read(tmp_path: Path) -> None:
    first = struct.pack("<IIIHHQQ", 1, 4096, 1, 0x2A, 0x100, 8, 3) + struct.pack("<IIIHHQQ", 2, 0, 1, 0x35, 0x101, 0, 4)
    second = struct.pack("<HHIIIQQQ", 0x88, 0x200, 1, 512, 1, 2**33, 3, 7)
    for data, expected in (
        (first, [(WRITE, 4096, 4096, 3000, None), (FLUSH, 0, 0, 4000, None)]),
        (second, [(READ, 2**42, 512, 3000, 10000)]),
    ):
        (tmp_path / "v").write_bytes(data)
        found = table(tmp_path / "v").to_pydict()
        columns = ("operation", "offset", "length", "arrival", "completed")
        assert recognise(tmp_path / "v") == "vscsi" and list(zip(*(found[name] for name in columns), strict=True)) == expected
    (tmp_path / "v").write_bytes(first[:50])
    with pytest.raises(DamagedFileError, match="cut short in record 1 at byte 32"):
        table(tmp_path / "v")


def test_blkparse_pairs_issue_and_completion(examples: dict[str, Path]) -> None:
    found = table(examples["blkparse"])
    assert found.column("completed").to_pylist() == [90000, 300500, None, None]
    assert found.column("label").to_pylist() == ["8,0", "8,16", "8,0", "8,0"]
    assert found.column("flags").to_pylist() == [0, FORCE_UNIT_ACCESS, 0, 0]


def test_disksim_waits_and_thinks(examples: dict[str, Path]) -> None:
    found = table(examples["disksim"]).to_pydict()
    assert found["dependency"] == [-1, 0]
    assert found["think"] == [0, 13876270]
    assert found["completed"] == [14095370, 27971640 + 1414000]
    assert found["tag"] == [1, 0]


def test_unknown_latencies_stay_unknown(tmp_path: Path) -> None:
    source, target = tmp_path / "a.parquet", tmp_path / "a.csv"
    columns = {"offset": [0, 512], "length": [512, 512], "arrival": [0, 2000], "completed": pa.array([500, None], pa.int64())}
    load_writable("parquet").write(iter([make_batch(columns)]), source)
    told = convert(source, target, "msr")
    assert table(target).column("completed").to_pylist() == [500, None]
    assert told.lines("msr") == ["completed is not known of all requests: msr holds a ResponseTime of -1 there"]


@pytest.mark.parametrize("name", ["blktrace", "blkparse", "fio-iolog", "tencent"])
def test_labels_that_a_format_does_not_hold_are_told(name: str, tmp_path: Path) -> None:
    source, kept = tmp_path / "a.parquet", {"tencent": "17", "fio-iolog": "/a"}.get(name, "8,0")
    labels = pa.array([kept, "orders", "lineitem"]).dictionary_encode()
    columns = {"offset": [0, 512, 0], "length": [512] * 3, "arrival": [0, 10**9, 2 * 10**9], "completed": [1, 10**9 + 1, 2 * 10**9 + 1]}
    load_writable("parquet").write(iter([make_batch(columns, label=labels)]), source)
    if name == "tencent":
        with pytest.raises(InvalidParameterError, match="label: 'orders', but tencent holds only labels that fit"):
            convert(source, tmp_path / "b", name)
        return
    assert f"{name} does not hold the labels of 2 requests, such as 'orders'" in convert(source, tmp_path / "b", name).lines(name)


def test_operations_that_a_file_does_not_tell_stay_unknown(examples: dict[str, Path], tmp_path: Path) -> None:
    kept, lost = tmp_path / "kept.parquet", tmp_path / "lost"
    assert convert(examples["oracle-general"], kept, "parquet").fill_values == {}
    assert "operation is not known of all requests: spc holds reads there" in convert(kept, lost, "spc").lines("spc")
    for path in (examples["oracle-general"], kept):
        assert describe(path)["unknown"] == ["operation"] and describe(path)["read_share"] is None
    assert describe(lost)["unknown"] == []


def test_conversion_says_what_is_lost(tmp_path: Path) -> None:
    source, target = tmp_path / "a.parquet", tmp_path / "a.csv"
    columns = {"offset": [0, 512], "length": [512, 512], "arrival": [1, 2000], "tag": [0, 3], "stream": [0, 0]}
    load_writable("parquet").write(iter([make_batch(columns, label="r")]), source)
    told = convert(source, target, "alibaba")
    assert (told.requests, told.dropped, told.rounded) == (2, ["tag", "label"], True)


@pytest.mark.parametrize(
    ("name", "columns", "message"),
    [
        ("mqsim", {"offset": [0], "length": [100], "arrival": [0]}, "length: 100 B"),
        ("mqsim", {"offset": [0], "length": [512]}, "arrival: not recorded"),
        ("spc", {"offset": [0], "length": [512], "arrival": [0], "operation": [TRIM]}, "operation: trim"),
        ("disksim", {"offset": [0, 0], "length": [512, 512], "arrival": [0, 0], "completed": [1, 1]}, "dependency: not a chain"),
        ("blktrace", {"offset": [0], "length": [1 << 32], "arrival": [0]}, "length: 4294967296 B"),
        ("blkparse", {"offset": [0], "length": [512], "arrival": [9], "completed": [8]}, "times: 9, -1, 8 ns"),
        ("blkparse", {"offset": [0], "length": [512], "arrival": [9], "flags": [2]}, "flags: 2"),
        ("blktrace", {"offset": [0] * 2, "length": [512] * 2, "arrival": [0, 0], "started": [1, None]}, "started: known of some"),
        ("oracle-general", {"offset": [0], "length": [512], "arrival": [(1 << 62) - 1]}, "arrival: 4611686018 s"),
        ("oracle-general", {"offset": [0], "length": [0], "arrival": [0], "operation": [FLUSH]}, "operation: flush"),
        ("oracle-general", {"offset": [0] * 2, "length": [512] * 2, "arrival": [10**9, 0]}, "arrival: not in order"),
        ("oracle-general", {"offset": [0], "length": [1 << 32], "arrival": [0]}, "length: "),
    ],
)
def test_what_a_format_cannot_hold_is_refused_and_leaves_nothing(name: str, columns: dict[str, Any], message: str, tmp_path: Path) -> None:
    source = tmp_path / "a.parquet"
    load_writable("parquet").write(iter([make_batch(columns)]), source)
    with pytest.raises(InvalidParameterError, match=message):
        convert(source, tmp_path / "b", name)
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize("content", [b"", b"\n\n", b"hello\nworld\n", bytes(range(256)), b"1 2 3\n", b"PK\x03\x04" + bytes(100)])
def test_foreign_files_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match="no recognizable format"):
        recognise(path)


def test_times_may_have_more_decimals_than_are_kept(tmp_path: Path) -> None:
    """As many as the shortest text of a double has."""
    (tmp_path / "a.spc").write_text("0,8,4096,r,0.0\n0,8,4096,r,0.009000000000000001\n")
    times = [value for batch in load_format("spc").read(tmp_path / "a.spc") for value in column(batch, "arrival").tolist()]
    assert times == [0, 9_000_000]


@pytest.mark.parametrize("flags", ["g", "f" * 20, "-1", "1_0", "0x1"])
def test_flags_that_are_no_hexadecimal_number_are_refused(flags: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(f"0.5 0 0 8 1\n1.5 0 0 8 {flags}\n")
    with pytest.raises(DamagedFileError, match="line 2: flags must be hexadecimal"):
        table(tmp_path / "a", "disksim-ascii")


@pytest.mark.parametrize("time", ["122678589332889720846350.235843358", "9999999999999999999954041", "18446744073709551617", "9" * 22])
@pytest.mark.parametrize(("name", "line"), [("spc", "0,8,512,W,{}\n"), ("disksim-ascii", "{} 0 8 1 0\n")])
def test_times_beyond_any_clock_are_refused_by_line(name: str, line: str, time: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(line.format("0.5") + line.format(time))
    with pytest.raises(DamagedFileError, match=r"line 2: (Timestamp|arrival) must be in \[0, "):
        table(tmp_path / "a", name)


def test_missing_files_and_unknown_formats(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError):
        recognise(tmp_path / "none")
    with pytest.raises(UnknownNameError, match="mqsim"):
        load_writable("mqsin")


def test_third_party_traces(test_data: Path, tmp_path: Path) -> None:
    mqsim = test_data / "mqsim" / "tpcc-small.trace"
    assert (recognise(mqsim), table(mqsim).num_rows) == ("mqsim", 6999)
    convert(mqsim, tmp_path / "again", "mqsim")
    assert (tmp_path / "again").read_bytes() == mqsim.read_bytes()
    for path in sorted((test_data / "disksim").glob("*.trace")):
        assert recognise(path) == "disksim"
        convert(path, tmp_path / "again", "disksim")
        assert table(tmp_path / "again").equals(table(path))


@pytest.mark.parametrize("name", ["parquet", "calls"])
def test_a_column_whose_name_is_no_text_is_damage(name: str, tmp_path: Path) -> None:
    damaged = example_of(name).replace(b"offset", b"\xff" * 6)
    assert is_refused(tmp_path / "damaged", damaged, lambda path: table(path, name))
    is_refused(tmp_path / "damaged", damaged, load_format(name).recognise)


def test_tables_of_blanks_quotes_repeats_and_dates_are_read(tmp_path: Path) -> None:
    path = tmp_path / "table"
    path.write_text("time_ms   lba  sectors op\n 1.5  8   16  W\n2\t0 1 R\n")
    found = table(path).to_pydict()
    assert recognise(path) == "csv" and (found["arrival"], found["offset"]) == ([1_500_000, 2_000_000], [4096, 0])
    path.write_text('offset,size,op,file,op_count\n0,512,R,"a,b",2\n512,512,"W",c,1\n')
    found = table(path).to_pydict()
    assert (found["label"], found["operation"], found["id"]) == (["a,b", "a,b", "c"], [READ, READ, WRITE], [0, 1, 2])
    path.write_text(
        "timestamp,offset,size\n1970-01-01T01:00:00.000000007+01:00,0,512\n1970-01-01 00:00:01Z,0,512\n1970-01-01 00:00:02,0,512\n"
    )
    assert table(path).column("arrival").to_pylist() == [7, 10**9, 2 * 10**9]
    assert table(path, "csv:time=timestamp:iso").column("arrival").to_pylist() == [7, 10**9, 2 * 10**9]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mqsim", "0 70000 8 8 1\n1000 0 8 8 1\n2000 1 8 8 1\n3000 70000 8 8 1\n"),
        ("fio-iolog", "fio version 3 iolog\n0 /a read 0 512\n1 device0 read 0 512\n2 device1 read 0 512\n3 /a read 0 512\n"),
    ],
)
def test_devices_with_names_and_with_numbers_stay_apart(name: str, text: str, tmp_path: Path) -> None:
    """A name may come before the number that it was given in its place."""
    (tmp_path / "a").write_text(text)
    found = table(tmp_path / "a", name).to_pydict()
    assert len(set(found["device"])) == 3 and found["device"][0] == found["device"][3]
    assert len(set(zip(found["device"], found["label"], strict=True))) == 3 and found["label"][0] in ("70000", "/a")


def test_what_a_file_is_told_by_and_its_units_are_said(examples: dict[str, Path]) -> None:
    assert basis(examples["spc"], "spc").endswith("device, offset in 512 B, length in B, operation, time in s")
    assert basis(examples["csv"], "csv").startswith(
        "its columns, time_us (time in us), disk (device), op (operation), lba (offset in 512 B), "
    )
    assert "times in ms" in basis(examples["fio-iolog-v2"], "fio-iolog-v2")
    assert "times in us" in basis(examples["fio-iolog"], "fio-iolog")
    for name, path in examples.items():
        assert basis(path, name), name


@pytest.mark.parametrize("pack", ["lz4", "pzstd"])
def test_frames_of_other_packers_are_read(pack: str, examples: dict[str, Path], tmp_path: Path) -> None:
    data = examples["msr"].read_bytes()
    skipped = b"\x5a\x2a\x4d\x18" + struct.pack("<I", 4) + b"size"
    frames = [skipped + pa.compress(part, "zstd", asbytes=True) for part in (data[:40], data[40:])]
    (tmp_path / "packed").write_bytes(b"".join(frames) if pack == "pzstd" else pa.compress(data, "lz4", asbytes=True))
    assert recognise(tmp_path / "packed") == "msr" and table(tmp_path / "packed").equals(table(examples["msr"]))


def test_what_cannot_be_unpacked_is_named(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a", "1,2\n")
    with pytest.raises(DamagedFileError, match="no recognizable format: zip packed it; unpack it first"):
        recognise(tmp_path / "a.zip")
    (tmp_path / "a").touch()
    with pytest.raises(DamagedFileError, match="no recognizable format: it is empty"):
        recognise(tmp_path / "a")


@pytest.mark.parametrize(
    ("name", "other"), [("disksim-ascii", "0.5 0 {} {} 1\n"), ("mqsim", "5 0 {} {} 1\n"), ("tencent", "5,{},{},1,7\n")]
)
def test_sectors_that_may_be_bytes_are_refused(name: str, other: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("".join(other.format(512 * row, 1024) for row in range(20)))
    with pytest.raises(DamagedFileError, match=f"it could be {name} or|it could be disksim-ascii or mqsim"):
        recognise(path)
    assert table(path, name).column("length").to_pylist() == [1024 * 512] * 20
    path.write_text("".join(other.format(8 * row, 1024) for row in range(20)))
    assert name in candidates(path) and "in bytes" not in doubts(path, candidates(path), load_format)


@pytest.mark.parametrize("name", [name for name in FORMATS.names() if name not in ("calls", "perf-trace", "strace")])
def test_a_request_of_no_byte_is_refused_and_named(name: str, tmp_path: Path) -> None:
    """Whatever a format says of it: as a line where there are lines, or as a request."""
    if not hasattr(load_format(name), "write") or name in ("blktrace", "blkparse", "oracle-general"):
        pytest.skip("it cannot be written, or holds no such request")
    times = {column: [0, 10**9] for column in ("arrival", "started", "completed")}
    columns = {"offset": [0, 512], "length": [512, 0], "dependency": [-1, 0], **times}
    load_writable(name).write(iter([make_batch(columns)]), tmp_path / "a")
    with pytest.raises(DamagedFileError, match=r"a, (line \d+|request 1): .*moves no byte"):
        table(tmp_path / "a", name)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("time_us,op,offset,length\n1,read,0,512\n2,flush,0,512\n", "line 3: length"),
        ("fio version 3 iolog\n1 /a read 0 512\n2 /a datasync 0 512\n", "line 3"),
        ("fio version 2 iolog\n/a read 0 512\n/a sync 0 512\n", "line 3"),
        ("  8,0 0 1 0.000000001 1 D R 8 + 8 [a]\n  8,0 0 2 0.000000002 1 D FN 8 + 8 [a]\n", "request 1"),
    ],
)
def test_a_flush_with_a_length_is_refused_and_named(text: str, where: str, tmp_path: Path) -> None:
    """Whatever the format; without it, it is read wherever it says to be, as in what fio writes."""
    (tmp_path / "a").write_text(text)
    with pytest.raises(DamagedFileError, match=f"a, {where}: a flush has no length"):
        table(tmp_path / "a")
    (tmp_path / "a").write_text(text.replace("flush,0,512", "flush,7,0").replace("sync 0 512", "sync 7 0").replace("FN 8 + 8 ", "FN "))
    assert table(tmp_path / "a").column("operation").to_pylist() == [READ, FLUSH]
    flush = make_batch({"offset": [0], "length": [512], "operation": [FLUSH]})
    load_writable("parquet").write(iter([flush]), tmp_path / "b")
    with pytest.raises(DamagedFileError, match="b, request 0: a flush has no length"):
        table(tmp_path / "b")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("3,R,8,16,1577808000000046\n3,W,1024,8,1577808000000050\n", "alibaba or csv .its offsets or lengths are not all multiples of 512"),
        ("128166372003061629,hm,1,Read,512,8,413\n", "msr or csv .its offsets or lengths are not all multiples of 512"),
        ("0,20941264,16,W,0.551706\n", "spc or csv .its offsets or lengths are not all multiples of 512"),
        ("disk,op,lba,sectors,ts\n3,R,512,1024,1577808000000046\n", "alibaba or csv .its header has lba, and not offset in B"),
        ("time_us,op,offset,length,repeat\n1,R,0,512,3\n", "alibaba or csv .its header has time_us, and not device"),
        (
            "ts,byte_offset,len,rw,disk\n1538323200,8,8,0,1\n",
            "tencent or csv .its header has byte_offset, and not offset in 512 B",
        ),
        ("ts,off,size_bytes,rw,disk\n1538323200,7,8,0,1\n", "tencent or csv .its header has size_bytes, and not length in 512 B"),
        ("1,2,3,0,5\n4,5,6,1,8\n", "tencent or csv .its times are no dates in s since 1970"),
    ],
)
def test_a_table_of_other_columns_or_units_is_no_format_by_chance(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(text)
    with pytest.raises(DamagedFileError, match=f"it could be {why}.*name it with --format"):
        recognise(tmp_path / "a")


def test_a_column_of_repeat_counts_is_found_by_its_name(tmp_path: Path) -> None:
    """A header that agrees with a format does not put it in doubt."""
    for name in ("repeat", "Op Count", "repeats"):
        (tmp_path / "a").write_text(f"op,offset,length,{name}\nR,0,512,3\nW,512,512,2\n")
        assert table(tmp_path / "a").column("operation").to_pylist() == [READ] * 3 + [WRITE] * 2
        (tmp_path / "b").write_text(f"key,{name}\n7,3\n9,1\n")
        assert [page for batch in page_trace(tmp_path / "b").batches() for page in batch.pages.tolist()] == [7, 7, 7, 9]
    (tmp_path / "c").write_text("device_id,opcode,offset,length,timestamp\n3,R,512,1024,1577808000000046\n")
    assert recognise(tmp_path / "c") == "alibaba" and table(tmp_path / "c").num_rows == 1
