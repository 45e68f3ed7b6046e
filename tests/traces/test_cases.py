"""Files as public bug reports describe them, with the values that the programs which define their formats give."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import flashsim as fs
from flashsim.core.errors import DamagedFileError, FlashsimError, FlashsimWarning
from flashsim.core.request import FLUSH, READ, TRIM, WRITE
from flashsim.core.units import KIB, SECONDS
from traces.file.excerpt import excerpt
from traces.file.page_trace import page_trace
from traces.summary.information import describe

#: Operations and bytes of the requests of each file, by its name and the columns that a user says.
REQUESTS: dict[tuple[str, str | None], list[tuple[int, int]]] = {
    ("blkparse-terminal.txt", None): [(READ, 4096), (WRITE, 4096)],
    ("blkparse-zoned.txt", None): [(WRITE, 4096), (WRITE, 4096)],
    ("blkparse-preflush-queue-only.txt", None): [(FLUSH, 0), (WRITE, 4096), (WRITE, 4096)],
    ("fio-v2-waits.iolog", None): [(READ, 4096)] * 3,
    ("ioda-bytes.trace", "time=1:ms,device=2,offset=3:bytes,length=4:bytes,operation=5:0/1"): [(READ, 8192), (WRITE, 8192)] * 10,
    ("device-numbers.trace", None): [(READ, 4096), (WRITE, 4096), (WRITE, 4096)],
    ("umass.spc.bz2", None): [(WRITE, 8192), (READ, 512)],
    ("opencas-file-events.csv", "offset=io.lba:sectors,length=io.len:sectors,operation=io.operation,time=header.timestamp:ns"): [
        (WRITE, 128 * KIB),
        (READ, 4096),
        (TRIM, 4096),
    ],
    ("blank-separated.txt", "time=1:us,offset=2:sectors,length=3:sectors,operation=4"): [(WRITE, 24 * KIB), (WRITE, 4096), (READ, 4096)],
    ("iso-times.csv", None): [(READ, 512), (WRITE, 512)],
}
#: Warnings of some files.
WARNED = {
    "blkparse-zoned.txt": "2 events are neither read, write, discard nor flush",
    "opencas-file-events.csv": "lines with neither offset, length nor operation are left out: 1",
}
#: Times of the requests of some files, ns from the first.
TIMES = {
    "fio-v2-waits.iolog": [0, 0, SECONDS],
    "iso-times.csv": [0, 3 * SECONDS // 2],
    "opencas-file-events.csv": [0, 12104, 17397],
}
#: References, distinct pages and writes of traces of pages; None where nothing says what writes.
REFERENCES: dict[tuple[str, str | None], tuple[int, int, int | None]] = {
    ("four-columns-no-arc.tr", "page=2"): (4, 3, None),
    ("cachelib-op-count.csv", None): (8, 2, 0),
    ("cachelib-leases.csv", None): (9, 2, 1),
    ("quoted-keys.csv", None): (3, 2, 1),
}


@pytest.mark.parametrize(("name", "columns"), REQUESTS)
def test_requests_are_those_of_the_file(name: str, columns: str | None, test_data: Path) -> None:
    with pytest.warns(FlashsimWarning, match=WARNED[name]) if name in WARNED else nullcontext():
        batches = list(excerpt(test_data / "cases" / name, columns=columns).batches())
    whole = pa.Table.from_batches(batches)
    rows = {column: whole.column(column).to_pylist() for column in ("operation", "length", "arrival")}
    assert list(zip(rows["operation"], rows["length"], strict=True)) == REQUESTS[name, columns]
    if name in TIMES:
        assert [time - rows["arrival"][0] for time in rows["arrival"]] == TIMES[name]


@pytest.mark.parametrize("name", ["idle-processor/sda.blktrace.0", "idle-processor/sda.blktrace.1", "pzstd.zst"])
def test_a_capture_is_the_same_from_an_idle_processor_and_packed_by_pzstd(name: str, test_data: Path) -> None:
    found = describe(test_data / "cases" / name)["operations"]
    assert {operation: each["requests"] for operation, each in found.items()} == {"read": 34, "write": 26}


@pytest.mark.parametrize(("name", "columns"), REFERENCES)
def test_references_are_those_of_the_file(name: str, columns: str | None, test_data: Path) -> None:
    batches = list(page_trace(excerpt(test_data / "cases" / name, columns=columns)).batches())
    pages = np.concatenate([batch.pages for batch in batches])
    writes = None if batches[0].writes is None else int(sum(batch.writes.sum() for batch in batches if batch.writes is not None))
    assert (len(pages), len(np.unique(pages)), writes) == REFERENCES[name, columns]


def test_a_file_of_two_formats_is_read_as_the_one_that_is_named(test_data: Path) -> None:
    path = test_data / "cases" / "four-columns-no-arc.tr"
    assert sum(len(batch.pages) for batch in page_trace(excerpt(path, "arc")).batches()) == 11
    with pytest.raises(DamagedFileError, match="does not count the requests"):
        page_trace(path)


@pytest.mark.parametrize(("name", "rows"), [("uint64-ids", 1), ("exponent-ids", 0), ("semicolon", 1)])
def test_a_join_of_two_files_has_the_right_rows(name: str, rows: int, test_data: Path) -> None:
    sources = [str(test_data / "cases" / f"{name}-{side}.csv") for side in "rs"]
    result = fs.join(*sources, "id", algorithm="grace-hash", device="ocz-core-60gb", memory="256KiB")
    assert len(result.rows()) == rows


def test_a_file_of_another_encoding_is_refused_by_line_and_column(test_data: Path) -> None:
    sources = [str(test_data / "cases" / f"latin1-{side}.csv") for side in "rs"]
    with pytest.raises(FlashsimError, match="latin1-r.csv: not UTF-8, line 2, column 1"):
        fs.join(*sources, "id", algorithm="grace-hash", device="ocz-core-60gb", memory="256KiB")
