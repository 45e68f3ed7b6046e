"""What every format of page traces does, whatever a file looks like."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flashsim.core.errors import DamagedFileError, InvalidParameterError
from flashsim.core.transactions import References
from traces.file.page_trace import page_trace
from traces.format import FORMATS, load_format
from traces.page_format import PAGE_FORMATS

#: What packs a file, by the usual ending.
_PACKERS = {"gz": gzip.compress, "xz": lzma.compress, "zst": lambda data: pa.compress(data, "zstd", asbytes=True)}
#: References that stand in for the example of a format which is written and brings none.
_WRITTEN = References(np.array([7, -2, 7], np.int64), np.array([False, True, False]))


def listed(batches: Iterator[References]) -> tuple[list[int], list[bool] | None]:
    parts = list(batches)
    writes = [flag for part in parts if part.writes is not None for flag in part.writes.tolist()]
    return [page for part in parts for page in part.pages.tolist()], writes or None


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    paths = {name: folder / f"{Path(name).stem}.trace" for name in PAGE_FORMATS.names()}
    for name, path in paths.items():
        if example := PAGE_FORMATS.load(name).EXAMPLE:
            path.write_bytes(example.content)
        else:
            PAGE_FORMATS.load(name).write(iter([_WRITTEN]), path)
    return paths


def expected(name: str) -> tuple[list[int], list[bool] | None]:
    example: Any = PAGE_FORMATS.load(name).EXAMPLE
    if example is None:
        return listed(iter([_WRITTEN]))
    return list(example.pages), None if example.writes is None else list(example.writes)


@pytest.mark.parametrize("name", PAGE_FORMATS.names())
def test_a_file_is_recognised_and_its_references_are_what_it_says(name: str, examples: dict[str, Path]) -> None:
    trace = page_trace(examples[name])
    assert trace.page_format == name
    assert listed(trace.batches()) == expected(name)
    assert listed(trace.batches()) == expected(name), "each call begins anew"
    assert PAGE_FORMATS.load(name).TITLE


@pytest.mark.parametrize("ending", _PACKERS)
@pytest.mark.parametrize("name", sorted(set(PAGE_FORMATS.names()) - {"parquet"}))
def test_packed_files_are_read_and_damaged_ones_refused(name: str, ending: str, examples: dict[str, Path], tmp_path: Path) -> None:
    packed = _PACKERS[ending](examples[name].read_bytes())
    (tmp_path / "packed").write_bytes(packed)
    (tmp_path / "cut").write_bytes(packed[:-5])
    assert listed(page_trace(tmp_path / "packed").batches()) == expected(name)
    with pytest.raises(DamagedFileError, match="cut cannot be unpacked"):
        listed(page_trace(tmp_path / "cut").batches())


@pytest.mark.parametrize("name", PAGE_FORMATS.names())
def test_a_damaged_line_or_record_is_named_and_a_file_that_is_cut_short_gives_no_wrong_reference(
    name: str, examples: dict[str, Path], tmp_path: Path
) -> None:
    data, path = examples[name].read_bytes(), tmp_path / "damaged"
    if data.isascii() and b"\0" not in data:
        for damage in (b"what is this?\n", b"\xff\xfe\x00\n"):
            path.write_bytes(data + data.splitlines(keepends=True)[-1] + damage)
            with pytest.raises(DamagedFileError, match=f"damaged, line {len(data.splitlines()) + 2}:"):
                listed(PAGE_FORMATS.load(name).references(path))
    for keep in range(0, len(data), max(1, len(data) // 100)):
        path.write_bytes(data[:keep])
        try:
            found = listed(PAGE_FORMATS.load(name).references(path))[0][:-1]
        except DamagedFileError:
            continue
        assert found == expected(name)[0][: len(found)]


@pytest.mark.parametrize("name", PAGE_FORMATS.names())
def test_what_is_written_is_read_back(name: str, tmp_path: Path) -> None:
    random, member = np.random.default_rng(1), PAGE_FORMATS.load(name)
    batches = [References(random.integers(-(2**63), 2**63 - 1, 300), random.random(300) < 0.5) for _ in range(3)]
    if name not in ("lines", "parquet"):
        with pytest.raises(InvalidParameterError, match="it can only be read"):
            member.write(iter(batches), tmp_path / "written")
        return
    member.write(iter(batches), tmp_path / "written")
    pages, writes = listed(page_trace(tmp_path / "written").batches())
    assert pages == listed(iter(batches))[0]
    assert writes in (None, listed(iter(batches))[1])


@pytest.mark.parametrize("name", FORMATS.names())
def test_traces_of_requests_are_not_taken_for_traces_of_pages(name: str, tmp_path: Path) -> None:
    """Except oracleGeneral, whose records are references to objects as well."""
    if example := load_format(name).EXAMPLE:
        (tmp_path / "requests").write_bytes(example.content)
        assert page_trace(tmp_path / "requests").page_format == ("oracle-general" if name == "oracle-general" else None)
