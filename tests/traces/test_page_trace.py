"""References to pages of any trace: ids of all kinds, requests split into pages, and files that are none."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flashsim.core.errors import DamagedFileError, FlashsimError, InvalidParameterError, MissingFileError, UnknownNameError
from flashsim.core.request import FLUSH, READ, TRIM, WRITE
from flashsim.core.transactions import BATCH
from flashsim.core.units import KIB
from traces.file.excerpt import Excerpt
from traces.file.page_trace import keep, page_trace
from traces.file.recording import ParquetWriter
from traces.file.schema import make_batch
from traces.page_format import lines
from traces.references import generated_trace
from traces.references.base import expand


def pages_of(path: Path, name: str | None = None) -> list[int]:
    return [page for batch in page_trace(Excerpt(path, name)).batches() for page in batch.pages.tolist()]


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.large_string())])
def test_words_of_every_kind_are_ids(kind: pa.DataType, tmp_path: Path) -> None:
    pq.write_table(pa.table({"page": pa.array(["a", "b", "a"]).cast(kind)}), tmp_path / "words.parquet")
    first, second, third = pages_of(tmp_path / "words.parquet")
    assert first == third != second


@pytest.mark.parametrize(("name", "references", "pages"), [("2_pools", 100000, 9939), ("sprite", 133996, 7075)])
def test_the_traces_of_lirs_are_read_without_their_break_points(name: str, references: int, pages: int, test_data: Path) -> None:
    path = test_data / "lirs" / f"{name}.trace.gz"
    words = gzip.decompress(path.read_bytes()).decode().split()
    found = pages_of(path)
    assert found == [int(word) for word in words if word != "*"]
    assert (len(found), len(set(found))) == (references, pages)


def test_a_word_is_the_same_page_wherever_it_stands_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of numbers alone, of numbers above 2**63, and of words are read in three ways."""
    monkeypatch.setattr("traces.format._text._CHUNK", 64)
    text = ["12", "-5", "0xff", "007", "18446744073709551615", "alpha", "deadbeef", "beta", "9" * 30, "ä"]
    for order in (text, text[::-1], text[5:] + text[:5]):
        many = [word for word in order for _ in range(40)]
        found = pages_of(written(tmp_path / "words", "\n".join(many)), "lines")
        ids = dict(zip(many, found, strict=True))
        assert [ids[word] for word in many] == found
        assert len(set(ids.values())) == len(text)
        assert [ids[word] for word in text[:5]] == [12, -5, 255, 7, -1]


def test_requests_are_split_into_pages_and_writes_told_apart(tmp_path: Path) -> None:
    columns = {
        "operation": [READ, WRITE, TRIM, FLUSH, READ],
        "offset": [0, 8191, 0, 0, 4096],
        "length": [8192, 2, 4096, 0, 512],
        "device": [0, 0, 0, 0, 1],
    }
    with ParquetWriter(tmp_path / "requests") as writer:
        writer.write(make_batch({name: np.array(column) for name, column in columns.items()}))
    trace = page_trace(tmp_path / "requests")
    (batch,) = trace.batches()
    assert trace.page_format is None
    assert batch.pages.tolist() == [0, 1, 1, 2, (1 << 48) + 1]
    assert batch.writes is not None and batch.writes.tolist() == [False, False, True, True, False]
    (batch,) = page_trace(tmp_path / "requests", 8 * KIB).batches()
    assert batch.pages.tolist() == [0, 0, 1, 1 << 48]


def test_long_runs_come_in_parts() -> None:
    begin, counts = np.array([10, 0, 5]), np.array([BATCH + 3, 2, 2 * BATCH])
    parts = list(expand(begin, counts))
    assert max(len(pages) for pages, _ in parts) == BATCH
    assert np.array_equal(
        np.concatenate([pages for pages, _ in parts]), np.concatenate([np.arange(a, a + n) for a, n in zip(begin, counts, strict=True)])
    )
    assert np.array_equal(np.concatenate([runs for _, runs in parts]), np.repeat([0, 1, 2], counts))


def test_a_csv_says_by_its_header_whether_it_is_of_pages(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "Page;write\n5;1\n6;false\n")
    (batch,) = page_trace(path).batches()
    assert batch.pages.tolist() == [5, 6] and batch.writes is not None and batch.writes.tolist() == [True, False]
    requests = written(tmp_path / "b.csv", "id,op,offset,length\n1,R,0,512\n")
    assert page_trace(requests).page_format is None
    assert page_trace(Excerpt(requests, "csv")).page_format is None
    assert pages_of(written(tmp_path / "c.csv", "a,key\n1,x y\n"), "csv") != [1]


def test_columns_of_a_csv_may_be_named(tmp_path: Path) -> None:
    """As of a trace that comes with libCacheSim, which counts an lbn as an object and not as a place on a device."""
    path = written(
        tmp_path / "lbn.csv", "version,time,op,size,lbn\n1,33898,2a,512,42932745\n1,33899,28,4096,6160447\n1,33901,2A,512,42932745\n"
    )
    (batch,) = page_trace(Excerpt(path, "csv:page=lbn,write=op:28/2a")).batches()
    assert batch.pages.tolist() == [42932745, 6160447, 42932745]
    assert batch.writes is not None and batch.writes.tolist() == [True, False, True]
    (batch,) = page_trace(Excerpt(path, "csv:page=lbn")).batches()
    assert batch.writes is None
    for columns, problem in (
        ("page=lba", "no column is lba"),
        ("page=lbn,write=o", "no column is o;"),
        ("page=lbn,write=op", "line 2: op must be"),
    ):
        with pytest.raises(DamagedFileError, match=problem):
            pages_of(path, f"csv:{columns}")
    for columns in ("page=lbn,page=size", "page=lbn,page=lbn", "page=lbn,write=op,write=size", "page=op,write=op:28/2a"):
        with pytest.raises(InvalidParameterError, match="page and write are named once each, and are two columns"):
            pages_of(path, f"csv:{columns}")
    for columns in ("page=", "page=lbn,offset=size:B", "write=op"):
        with pytest.raises(InvalidParameterError, match="it must be page=NAME,write=NAME:READ/WRITE"):
            page_trace(Excerpt(path, f"csv:{columns}"))


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("", None, "refers to no page"),
        ("", "lines", "refers to no page"),
        ("*\n\n*\n", None, "refers to no page"),
        ("page,write\n", None, "refers to no page"),
        ("\0\1\2", None, r"no recognizable format: known are .*\barc\b"),
        ("1\n2 3\n", "lines", "line 2: it has more than one word"),
        ("1\n2,3\n", "lines", "line 2: '2,3' is not id"),
        ("some words\nof prose\n", None, "no recognizable format"),
        ("1 0 0 0\n", None, r"line 1: pages must be in \[1, 2147483648\]"),
        ("1 2 0 0\n1 2 0\n", "arc", "line 2: '1 2 0' is not first page pages ignored request"),
        ("page,op\n1,read\n2,what\n", None, "line 3: op must be one of r, read"),
        ("page\n1\n\n", None, "line 3: page is empty"),
        ("a,b\n1,2\n", "csv", "line 1: no column is"),
        ("page,Page\n1,2\n", "csv", None),
        ("page,page\n1,2\n", "csv", "line 1: two columns have the same name"),
        ("\0" * 24, "oracle-general", "record 0 at byte 0: its next access is not ahead"),
    ],
)
def test_a_file_that_is_none_is_one_line(text: str, name: str | None, message: str | None, tmp_path: Path) -> None:
    path = written(tmp_path / "damaged", text)
    if message is None:
        assert pages_of(path, name)
        return
    with pytest.raises(DamagedFileError, match=message) as refused:
        pages_of(path, name)
    assert "\n" not in str(refused.value)


def test_what_is_asked_for_of_a_trace_must_be_possible(tmp_path: Path) -> None:
    path = written(tmp_path / "ids", "1\n2\n")
    with pytest.raises(MissingFileError, match="no file at"):
        page_trace(tmp_path / "none")
    with pytest.raises(UnknownNameError, match="did you mean lines"):
        page_trace(Excerpt(path, "line"))
    with pytest.raises(InvalidParameterError, match="page size: 100 B"):
        page_trace(path, 100)
    with pytest.raises(InvalidParameterError, match="neither devices nor times"):
        page_trace(Excerpt(path, start=1))


def test_a_mark_before_the_text_is_no_part_of_an_id(tmp_path: Path) -> None:
    assert pages_of(written(tmp_path / "ids", "\ufeff12\r\n13\r\n")) == [12, 13]


@pytest.mark.deep
def test_ten_million_bytes_of_ids_are_read_in_batches(tmp_path: Path) -> None:
    ids = np.random.default_rng(1).integers(0, 10**6, BATCH * 3 + 1)
    path = tmp_path / "ids"
    lines.write(iter([next(iter(page_trace(written(path, "\n".join(map(str, ids.tolist())))).batches()))]), tmp_path / "first")
    batches = list(page_trace(path).batches())
    assert max(len(batch.pages) for batch in batches) == BATCH
    assert np.array_equal(np.concatenate([batch.pages for batch in batches]), ids)
    assert pages_of(tmp_path / "first") == ids[: len(batches[0].pages)].tolist()


@pytest.mark.parametrize("to", ["lines", "parquet"])
def test_what_is_kept_is_complete_or_not_there(to: str, tmp_path: Path) -> None:
    source = generated_trace("zipf:pages=1000,references=6e5,write-share=0.2")
    assert keep(source.batches(), tmp_path / "kept", to) == 600_000
    trace = page_trace(tmp_path / "kept")
    for ours, theirs in zip(trace.batches(), source.batches(), strict=True):
        assert np.array_equal(ours.pages, theirs.pages)
        assert ours.writes is None if to == "lines" else np.array_equal(ours.writes, theirs.writes)
    broken = page_trace(Excerpt(written(tmp_path / "broken", "1\n" * 100 + "2 3\n"), "lines"))
    with pytest.raises(DamagedFileError, match="line 101"):
        keep(broken.batches(), tmp_path / "none", to)
    with pytest.raises(FlashsimError, match="cannot write"):
        keep(source.batches(), tmp_path / "no" / "folder", to)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken", "kept"]


def test_a_table_says_how_often_its_lines_count(tmp_path: Path) -> None:
    """As CacheLib's traces do; also of many references, which come in parts."""
    path = written(tmp_path / "a.csv", f"key,op,size,op_count\nx,GET,1,{BATCH + 2}\ny,SET_LEASE,1,1\n")
    batches = list(page_trace(path).batches())
    assert [len(batch.pages) for batch in batches] == [BATCH, 3] and len(set(pages_of(path))) == 2
    assert batches[1].writes is not None and batches[1].writes.tolist() == [False, False, True]
    with pytest.raises(DamagedFileError, match=r"line 3: op_count must be in \[1, 2147483648\]"):
        pages_of(written(tmp_path / "a.csv", "key,op_count\nx,1\ny,0\n"))
    with pytest.raises(DamagedFileError, match="line 3: op_count"):
        pages_of(written(tmp_path / "a.csv", "key,op,size,op_count,key_size\nx,GET,10,3,1\ny,GET,10,,1\n"))


def test_tables_of_blanks_without_a_header_are_named_by_numbers(tmp_path: Path) -> None:
    path = written(tmp_path / "a", "0  7 R\n1\t7 W\n2 9  R\n")
    (batch,) = page_trace(Excerpt(path, "csv:page=2,write=3")).batches()
    assert batch.pages.tolist() == [7, 7, 9] and batch.writes is not None and batch.writes.tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("ends", "fits"),
    [(["0 0", "0 1", "0 2"], True), (["5 7", "5 8", "5 9"], True), (["0 0", "1 1", "0 2"], False), (["0 0", "0 2", "0 3"], False)],
)
def test_four_numbers_are_arc_where_the_last_counts_the_requests(ends: list[str], fits: bool, tmp_path: Path) -> None:
    """The field before it is the same in all lines."""
    path = written(tmp_path / "a", "".join(f"{9 * row} 2 {end}\n" for row, end in enumerate(ends)))
    if fits:
        assert page_trace(path).page_format == "arc"
    else:
        with pytest.raises(DamagedFileError, match="it could be arc or csv .*; name it with --format"):
            page_trace(path)
    assert len(pages_of(path, "arc")) == 6
