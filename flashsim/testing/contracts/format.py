"""The contract of trace formats: files are recognised and read as what they say, damage is refused by name, what is written comes back."""

import bz2
import gzip
import lzma
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flashsim.core.errors import DamagedFileError, FlashsimWarning
from flashsim.core.request import READ, WRITE
from flashsim.core.units import NEVER, SECONDS
from flashsim.testing.contract import Contract, examples
from traces.file.conversion import convert
from traces.file.excerpt import Excerpt
from traces.file.schema import SCHEMA, make_batch
from traces.format.base import FORMATS, Format, candidates, formats, load_format, load_writable, read_trace

__all__ = ["FormatContract"]

#: What packs a file, by the usual ending.
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
    "zst": lambda data: pa.compress(data, "zstd", asbytes=True),
}
#: Requests that stand in for the example of a format which is written and brings none.
_WRITTEN = [(READ, 0, 512, None), (READ, 512, 512, None)]
#: What damage puts in the place of a few bytes.
FOREIGN = st.one_of(
    st.binary(max_size=12),
    st.integers(-(2**70), 2**70).map(lambda number: str(number).encode()),
    st.sampled_from([b"", b"-1", b"nan", b"1e400", b"0x10", b"\r\n", b"\0", b",", b" ", b"\n\n", b'"', b"9" * 40, "\u0661".encode()]),
)
#: Operation, first sector, sectors, steps of time, and device.
_REQUEST = st.tuples(st.sampled_from([READ, WRITE]), st.integers(0, 2**40), st.integers(1, 2**20), st.integers(0, 10**6), st.integers(0, 3))
_CHAIN = st.lists(_REQUEST, min_size=1)


def table(path: Path, name: str | None = None) -> pa.Table:
    """All requests of a trace file."""
    return pa.Table.from_batches(list(read_trace(path, name)), SCHEMA)


def example_of(name: str) -> bytes:
    """A file of the format: its example, or two requests that it writes."""
    if example := load_format(name).EXAMPLE:
        return example.content
    with folder() as place:
        load_writable(name).write(iter([make_batch({"offset": [0, 512], "length": [512, 512]})]), place / "written")
        return (place / "written").read_bytes()


@contextmanager
def folder() -> Iterator[Path]:
    """A folder that is removed again; captures that are read as far as they go are no news."""
    with TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore", FlashsimWarning)
        yield Path(place)


def is_text(data: bytes) -> bool:
    return data.isascii() and b"\0" not in data


def is_refused(path: Path, data: bytes, read: Any) -> bool:
    """Whether a file is refused by name and in one line; anything but a refusal is let through."""
    path.write_bytes(data)
    refusal = ""
    try:
        read(path)
    except DamagedFileError as problem:
        refusal = str(problem)
    assert str(path) in (refusal or str(path)) and "\n" not in refusal, f"a refusal names the file in one line, and not: {refusal}"
    return bool(refusal)


def _plausible(found: pa.Table) -> bool:
    """Whether all numbers are ones that the schema allows."""
    columns = {name: np.array(found.column(name).drop_null().to_pylist(), np.int64) for name in SCHEMA.names if name != "label"}
    times = [columns[name] for name in ("arrival", "started", "completed", "think", "offset", "length", "device")]
    return bool(
        all(((values >= 0) & (values < NEVER)).all() for values in times)
        and (columns["offset"] + columns["length"] < NEVER).all()
        and np.isin(columns["operation"], range(4)).all()
        and (columns["dependency"] < columns["id"]).all()
    )


def _columns(name: str, drawn: list[tuple[int, ...]]) -> dict[str, Any]:
    """Columns that every format which is written can hold or leave out, in its steps of time."""
    member = load_writable(name)
    operation, sector, sectors, wait, device = (np.array(column, np.int64) for column in zip(*drawn, strict=True))
    step = member.RESOLUTION
    if step >= SECONDS:  # of which a file may hold 32 bits
        wait = wait % 1024
    times = np.concatenate([[0], np.cumsum(2 * wait * step)])[:-1]
    columns: dict[str, Any] = {"operation": operation, "offset": sector * 512, "length": sectors * 512, "arrival": times}
    columns |= {"completed": times + wait * step, **dict.fromkeys(("device", "stream", "priority", "tag"), device)}
    if "think" in member.CARRIES:
        columns |= {"started": times, "dependency": np.arange(-1, len(times) - 1), "think": np.concatenate([[0], wait[:-1] * step])}
    return columns


def _values(rows: pa.Table, column: str, labelled: bool) -> list[Any]:
    """A column; with labels, which name devices, these are numbered as they appear."""
    values = rows.column(column).to_pylist()
    return list(map(list(dict.fromkeys(values)).index, values)) if labelled and column == "device" else values


class FormatContract(Contract):
    """Properties of a trace format (`traces.format.base`)."""

    FAMILY = FORMATS

    @property
    def format(self) -> Format:
        return load_format(self.name)

    def requests_end(self, lines: list[bytes]) -> int:
        """The number of lines before a summary, which may be anything."""
        return len(lines)

    def test_its_files_are_recognised_and_no_others(self) -> None:
        """By itself, and where it is not generic by no other; it takes no example of another format for its own."""
        with folder() as place:
            (place / "own").write_bytes(example_of(self.name))
            assert self.format.recognise(place / "own") and self.format.TITLE, "it does not recognise its own example"
            found = set(candidates(place / "own")) - {self.name}
            taken = [each for each in found if self.format.GENERIC or not load_format(each).GENERIC]
            assert not taken, f"its example is taken for {', '.join(taken)}"
            for name, other in formats().items():
                if name != self.name and other.EXAMPLE and not self.format.GENERIC:
                    (place / "other").write_bytes(other.EXAMPLE.content)
                    assert not self.format.recognise(place / "other"), f"it takes a file of {name} for its own"

    def test_requests_are_what_the_example_says(self) -> None:
        with folder() as place:
            (place / "own").write_bytes(example_of(self.name))
            found = table(place / "own", self.name)
        rows = list(zip(*(found.column(column).to_pylist() for column in ("operation", "offset", "length", "arrival")), strict=True))
        wanted = list(self.format.EXAMPLE.requests if self.format.EXAMPLE else _WRITTEN)
        assert rows == wanted, f"it reads {rows}, and its example has {wanted}"
        assert found.column("id").to_pylist() == list(range(found.num_rows)), "ids are not 0, 1, 2, ..."

    def test_a_file_that_is_cut_short_is_damaged_or_ends_at_a_whole_request(self) -> None:
        with folder() as place:
            data, columns = example_of(self.name), ["operation", "offset"]
            (place / "own").write_bytes(data)
            whole = table(place / "own", self.name).select(columns).to_pylist()
            for keep in range(0, len(data), max(1, len(data) // 400)):
                (place / "cut").write_bytes(data[:keep])
                try:
                    found = table(place / "cut", self.name).select(columns).to_pylist()
                except DamagedFileError:
                    continue
                assert len(found) <= len(whole) and found[:-1] == whole[: len(found[:-1])], f"other requests from its first {keep} bytes"

    def test_a_damaged_line_is_named(self) -> None:
        """The second and the last of a text, of three times the example where lines may be repeated."""
        data = example_of(self.name)
        if not is_text(data):
            pytest.skip("its files are no text")
        lines = data.splitlines(keepends=True)
        last = self.requests_end(lines)
        with folder() as place:
            path = place / "damaged"
            repeats = not is_refused(path, b"".join(lines[:last] * 3), lambda path: table(path, self.name))
            good = lines[:last] * (3 if repeats else 1)
            for number in {2, len(good) - 1}:
                for damage in (b"what is this?\n", b"\xff\xfe\x00\n"):
                    path.write_bytes(b"".join([*good[:number], damage, *good[number:], *lines[last:]]))
                    with pytest.raises(DamagedFileError, match=f"damaged, line {number + 1}:"):
                        table(path, self.name)

    def test_packed_files_are_read_and_damaged_ones_refused(self) -> None:
        data = example_of(self.name)
        with folder() as place:
            (place / "plain").write_bytes(data)
            for ending, pack in PACKERS.items():
                packed, path = pack(data), place / "packed"
                path.write_bytes(packed)
                if not self.format.recognise(path):
                    pytest.skip("it does not unpack its files")
                assert table(path, self.name).equals(table(place / "plain", self.name)), f"other requests from a file that {ending} packed"
                altered = packed[:20] + b"\xff\0\xff" + packed[23:]  # only a checksum tells, which zstd may do without
                for damaged in (packed[:-9], packed[: len(packed) // 2], *([] if ending == "zst" else [altered])):
                    assert is_refused(path, damaged, lambda path: list(self.format.read(path))), (
                        f"a damaged file that {ending} packed is read"
                    )

    def test_what_is_written_comes_back(self) -> None:
        if not hasattr(self.format, "write"):
            pytest.skip("it can only be read")
        self.check_what_is_written()

    @examples(15)
    @given(drawn=_CHAIN, cut=st.integers(1, 20))
    @example(drawn=[(READ, 8, 1, 5, 1), (WRITE, 2**40, 2**20, 10**6, 0), (READ, 0, 3, 0, 1)], cut=2)
    def check_what_is_written(self, drawn: list[tuple[int, ...]], cut: int) -> None:
        """In batches of any size, and from there into a second file; what does not come back is what a conversion says is lost."""
        member, columns = load_writable(self.name), _columns(self.name, drawn)
        whole, labelled = make_batch(columns), "label" in member.CARRIES
        with folder() as place:
            first, second, source = place / "first", place / "second", place / "source"
            member.write((whole.slice(begin, cut) for begin in range(0, whole.num_rows, cut)), first)
            assert member.recognise(first), "it does not recognise what it wrote"
            found, again = table(first, self.name), convert(Excerpt(first, self.name), second, self.name)
            tables = found, pa.Table.from_batches([whole])
            read, written = ({column: _values(rows, column, labelled) for column in columns} for rows in tables)
            lost = [column for column in SCHEMA.names if read.get(column) != written.get(column)]
            wrong = [f"{column} is {read[column]}, and was {written[column]}" for column in lost if column in member.CARRIES]
            assert not wrong, "; ".join(wrong)
            assert not again.rounded and table(second, self.name).equals(found), "what is written a second time differs"
            load_writable("parquet").write(iter([whole]), source)
            dropped = convert(Excerpt(source, "parquet"), second, self.name).dropped
            assert dropped == lost, f"a conversion says that {dropped} are lost, and {lost} are"

    @examples(40)
    @given(content=st.binary(max_size=300))
    @example(content=b"\r")
    def test_no_file_ends_in_anything_but_an_error_of_ours(self, content: bytes) -> None:
        with folder() as place:
            for read in (lambda path: table(path, self.name), self.format.recognise):
                is_refused(place / "any", content, read)

    def test_numbers_that_no_request_has_are_refused(self) -> None:
        """In the place of each number of a text."""
        data = example_of(self.name)
        for number in re.finditer(rb"\d+", data) if is_text(data) else ():
            for foreign in (b"-1", b"%d" % (1 << 62), b"9" * 40):
                self.check_damaged(data[: number.start()] + foreign + data[number.end() :])

    @examples(60)
    @given(where=st.floats(0, 1), size=st.integers(0, 20), foreign=FOREIGN)
    def test_damage_anywhere_is_read_as_requests_or_refused_by_name(self, where: float, size: int, foreign: bytes) -> None:
        data = example_of(self.name)
        at = int(where * len(data))
        self.check_damaged(data[:at] + foreign + data[at + size :])

    def check_damaged(self, data: bytes) -> None:
        found = list[pa.Table]()
        with folder() as place:
            is_refused(place / "damaged", data, lambda path: found.append(table(path, self.name)))
        assert all(map(_plausible, found)), f"numbers are read that no request has, from {data[:99]!r}"
