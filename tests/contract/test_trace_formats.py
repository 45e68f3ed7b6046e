"""What every trace format does, whatever a file looks like."""

from __future__ import annotations

import gzip
import lzma
import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashsim.core.errors import DamagedFileError, FlashsimError, FlashsimWarning, InvalidParameterError, MissingFileError, UnknownNameError
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, READ, TRIM, WRITE
from flashsim.core.units import NEVER
from traces.file.conversion import convert
from traces.file.excerpt import Excerpt
from traces.file.schema import SCHEMA, make_batch
from traces.format import FORMATS, load_format, read_trace, recognise, writable
from traces.format.base import candidates, load_writable
from traces.summary.information import describe

#: Requests that stand in for the example of a format which is written and brings none.
_WRITTEN = [(READ, 0, 512, None), (READ, 512, 512, None)]


def table(path: Path, name: str | None = None) -> pa.Table:
    return pa.Table.from_batches(list(read_trace(path, name)), SCHEMA)


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("formats")
    paths = {name: folder / f"{Path(name).stem}.trace" for name in FORMATS.names()}
    for name, path in paths.items():
        if example := load_format(name).EXAMPLE:
            path.write_bytes(example.content)
        else:
            load_writable(name).write(iter([make_batch({"offset": [0, 512], "length": [512, 512]})]), path)
    return paths


def is_text(path: Path) -> bool:
    data = path.read_bytes()
    return data.isascii() and b"\0" not in data


@pytest.mark.parametrize("name", FORMATS.names())
def test_each_file_is_recognised_by_its_own_format_alone(name: str, examples: dict[str, Path]) -> None:
    assert candidates(examples[name]) == [name]
    assert recognise(examples[name]) == name
    assert load_format(name).TITLE


@pytest.mark.parametrize("name", FORMATS.names())
def test_requests_are_what_the_lines_say(name: str, examples: dict[str, Path]) -> None:
    found = table(examples[name])
    rows = zip(*(found.column(column).to_pylist() for column in ("operation", "offset", "length", "arrival")), strict=True)
    example = load_format(name).EXAMPLE
    assert list(rows) == list(example.requests if example else _WRITTEN)
    assert found.column("id").to_pylist() == list(range(found.num_rows))


@pytest.mark.parametrize("name", FORMATS.names())
def test_a_file_that_is_cut_short_is_damaged_or_ends_at_a_whole_request(name: str, examples: dict[str, Path], tmp_path: Path) -> None:
    data, whole = examples[name].read_bytes(), table(examples[name])
    columns = ["operation", "offset"]
    warnings.simplefilter("ignore", FlashsimWarning)  # of captures that are read as far as they go
    for keep in range(0, len(data), max(1, len(data) // 400)):
        cut = tmp_path / "cut"
        cut.write_bytes(data[:keep])
        try:
            found = table(cut, name)
        except DamagedFileError:
            continue
        else:
            assert found.num_rows <= whole.num_rows
            sure = max(0, found.num_rows - 1)
            assert found.slice(0, sure).select(columns).to_pylist() == whole.slice(0, sure).select(columns).to_pylist()


@pytest.mark.parametrize("name", FORMATS.names())
def test_a_damaged_line_is_named(name: str, examples: dict[str, Path], tmp_path: Path) -> None:
    if not is_text(examples[name]):
        return
    lines = examples[name].read_bytes().splitlines(keepends=True)
    last = next(number for number, line in enumerate(lines) if line.startswith(b"CPU")) if name == "blkparse" else len(lines)
    good = lines[:last] * (3 if _has_no_header(b"".join(lines[:last] * 3), name, tmp_path / "thrice") else 1)
    for number in {2, len(good) - 1}:
        for damage in (b"what is this?\n", b"\xff\xfe\x00\n"):
            path = tmp_path / "damaged"
            path.write_bytes(b"".join([*good[:number], damage, *good[number:], *lines[last:]]))
            with pytest.raises(DamagedFileError, match=f"damaged, line {number + 1}:"):
                table(path, name)


def _has_no_header(data: bytes, name: str, path: Path) -> bool:
    """Whether lines may be repeated."""
    path.write_bytes(data)
    try:
        table(path, name)
    except DamagedFileError:
        return False
    return True


#: What packs a file, by the usual ending.
_PACKERS = {"gz": gzip.compress, "xz": lzma.compress, "zst": lambda data: pa.compress(data, "zstd", asbytes=True)}


@pytest.mark.parametrize("ending", _PACKERS)
@pytest.mark.parametrize("name", sorted(set(FORMATS.names()) - {"parquet", "calls"}))
def test_packed_files_are_read_and_damaged_ones_refused(name: str, ending: str, examples: dict[str, Path], tmp_path: Path) -> None:
    packed, damaged = tmp_path / "packed", tmp_path / "damaged"
    packed.write_bytes(_PACKERS[ending](examples[name].read_bytes()))
    assert recognise(packed) == name and table(packed).equals(table(examples[name]))
    whole = packed.read_bytes()
    altered = whole[:20] + b"\xff\0\xff" + whole[23:]  # only a checksum tells, which zstd may do without
    for data in (whole[:-9], whole[: len(whole) // 2], *([] if ending == "zst" else [altered])):
        damaged.write_bytes(data)
        for given_name in (name, None):
            with pytest.raises(DamagedFileError, match=str(damaged)) as refused:
                table(damaged, given_name)
            assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["msr", "mqsim", "csv"])
def test_foreign_line_ends_are_read(name: str, examples: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "windows").write_bytes(examples[name].read_bytes().replace(b"\n", b"\r\n"))
    assert table(tmp_path / "windows").equals(table(examples[name]))


@pytest.mark.parametrize("name", ["blktrace", "blkparse"])
def test_a_capture_that_is_cut_short_is_read_up_to_there_with_a_word(name: str, examples: dict[str, Path], tmp_path: Path) -> None:
    """Cut after each byte in turn: the warning names the byte where the event begins that is not whole."""
    data, cut = examples[name].read_bytes(), tmp_path / "cut"
    if name == "blkparse":
        data = data[: data.index(b"CPU3")]
        begins = [0] + [at + 1 for at, byte in enumerate(data) if byte == 10]
    else:
        begins = [*range(0, len(data) + 1, 48)]
    warned = 0
    for keep in range(begins[1], len(data)):
        cut.write_bytes(data[:keep])
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = table(cut, name)
        last = max(begin for begin in begins if begin <= keep)
        cut.write_bytes(data[:last])
        assert found.num_rows - table(cut, name).num_rows in ({0} if said else {0, 1})
        assert bool(said) <= (keep not in begins)
        assert all(f"at byte {last}: it was read up to there" in str(warning.message) for warning in said)
        warned += bool(said)
    assert warned > len(data) // 2
    cut.write_bytes(data[: begins[1] // 2])
    with pytest.raises(DamagedFileError, match="cut short in .* at byte 0" if name == "blktrace" else "cut short|no event|byte 0"):
        table(cut, name)


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
    path.write_text("3,2,1,7,Y\n4,1,0,9,N\n")
    given = table(path, "csv:time=1:s,offset=2:4KiB,length=3:MiB,operation=5:Y/N,device=4").to_pydict()
    assert given["arrival"] == [3 * 10**9, 4 * 10**9] and given["offset"] == [8192, 4096] and given["operation"] == [READ, WRITE]
    assert given["length"] == [2**20, 0] and given["device"] == [7, 9]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("time,offset,size\n1,2,3\n", "", "time has no unit; name one with --columns time=time:ms"),
        ("lba,offset,size\n1,2,3\n", "", "lba or offset could be the offset"),
        ("a,b\n1,2\n", "", "no column is the offset"),
        ("a,a\n1,2\n", "", "two columns have the same name"),
        ("a,b\n1,2\n", "offset=c:bytes", "columns: offset=c, but .* has a, b"),
        ("a,b\n1,2\n", "offset=a:ells", "unit of column a: 'ells'"),
        ("a,b\n1,2\n", "offset=a:bytes,length=a:bytes", "no two roles"),
        ("a,b\n1,2\n", "where=a", "columns: 'where=a'"),
        ("offset,size,op\n1,2,jump\n", "", "line 2: op is no operation"),
        ("offset,size\n1,\n", "", "line 2: size is empty"),
        ("offset,size_kib\n1,0.0001\n", "", "line 2: size_kib must be whole bytes"),
        ("offset,size\n1,2\n1,2,3\n", "", "line 3"),
    ],
)
def test_tables_that_say_too_little_are_refused_by_column_or_line(text: str, options: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "t").write_text(text)
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


_CHAIN = st.lists(
    st.tuples(st.sampled_from([READ, WRITE]), st.integers(0, 2**40), st.integers(1, 2**20), st.integers(0, 10**6)), min_size=1
)


def _steps(name: str, drawn: list[tuple[int, int, int, int]]) -> dict[str, Any]:
    """Columns that every format which is written can hold, in its steps of time."""
    member = load_writable(name)
    operation, sector, sectors, wait = (np.array(column, np.int64) for column in zip(*drawn, strict=True))
    step = member.RESOLUTION
    if name == "oracle-general":  # holds no operation, and 32 bits of seconds
        operation, wait = 0 * operation, wait % 1000
    times = np.concatenate([[0], np.cumsum(2 * wait * step)])[:-1]
    columns: dict[str, Any] = {"operation": operation, "offset": sector * 512, "length": sectors * 512, "arrival": times}
    if "completed" in member.CARRIES:
        columns["completed"] = times + wait * step
    if "think" in member.CARRIES:
        columns |= {"started": times, "dependency": np.arange(-1, len(times) - 1), "think": np.concatenate([[0], wait[:-1] * step])}
    return columns


@pytest.mark.parametrize("name", writable())
@settings(max_examples=15)
@given(drawn=_CHAIN, cut=st.integers(1, 20))
def test_what_is_written_comes_back(
    name: str, drawn: list[tuple[int, int, int, int]], cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = make_batch(_steps(name, drawn))
    first, second = (tmp_path_factory.mktemp("trip", numbered=True) / part for part in ("first", "second"))
    pieces = [whole.slice(begin, cut) for begin in range(0, whole.num_rows, cut)]
    load_writable(name).write(iter(pieces), first)
    assert name in candidates(first)  # MQSim's nanoseconds may be DiskSim's milliseconds
    found = table(first, name)
    compared = [column for column in load_writable(name).CARRIES if column != "label"]
    assert found.select(compared).to_pydict() == pa.Table.from_batches([whole]).select(compared).to_pydict()
    assert not convert(Excerpt(first, name), second, name).rounded
    assert name == "parquet" or second.read_bytes() == first.read_bytes()


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
        ("oracle-general", {"offset": [0], "length": [512], "arrival": [0], "operation": [FLUSH]}, "operation: flush"),
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
    with pytest.raises(DamagedFileError, match="no format that can be told"):
        recognise(path)


@settings(max_examples=40)
@given(content=st.binary(max_size=300), name=st.sampled_from(FORMATS.names()))
def test_no_file_ends_in_anything_but_an_error_of_ours(content: bytes, name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("any", numbered=True) / "any"
    path.write_bytes(content)
    refusals = []
    warnings.simplefilter("ignore", FlashsimWarning)
    for given_name in (name, None):  # as the named format, and as whatever it is told to be
        try:
            table(path, given_name)
        except FlashsimError as problem:
            refusals.append(str(problem))
    assert not any("\n" in refusal for refusal in refusals)


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


#: What damage puts in the place of a few bytes.
_FOREIGN = st.one_of(
    st.binary(max_size=12),
    st.integers(-(2**70), 2**70).map(lambda number: str(number).encode()),
    st.sampled_from([b"", b"-1", b"nan", b"1e400", b"0x10", b"\r\n", b"\0", b",", b" ", b"\n\n", b'"', b"9" * 40, "\u0661".encode()]),
)


def _plausible(found: pa.Table) -> bool:
    """Whether all numbers are ones that the schema allows."""
    columns = {name: np.array(found.column(name).drop_null().to_pylist(), np.int64) for name in SCHEMA.names if name != "label"}
    times = [columns[name] for name in ("arrival", "started", "completed", "think", "offset", "length", "device")]
    return (
        all(((values >= 0) & (values < NEVER)).all() for values in times)
        and (columns["offset"] + columns["length"] < NEVER).all()
        and np.isin(columns["operation"], range(4)).all()
        and (columns["dependency"] < columns["id"]).all()
    )


@pytest.mark.parametrize("name", FORMATS.names())
@settings(max_examples=60)
@given(where=st.floats(0, 1), size=st.integers(0, 20), foreign=_FOREIGN)
def test_damage_anywhere_is_read_as_requests_or_refused_by_name(
    name: str, where: float, size: int, foreign: bytes, examples: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = examples[name].read_bytes()
    at = int(where * len(data))
    path = tmp_path_factory.mktemp("damage", numbered=True) / "damage"
    path.write_bytes(data[:at] + foreign + data[at + size :])
    refusal, found = str(path), None
    warnings.simplefilter("ignore", FlashsimWarning)
    try:
        found = table(path, name)
    except DamagedFileError as problem:
        refusal = str(problem)
    assert str(path) in refusal and "\n" not in refusal
    assert found is None or _plausible(found)


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
