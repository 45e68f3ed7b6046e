"""Every format of page traces, and which files are taken for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from flashsim.testing.contracts.format import PACKERS, is_refused
from flashsim.testing.contracts.page_format import PageTraceContract, list_references, page_example
from tests.contract.members import each_of
from traces.file.page_trace import page_trace
from traces.format import FORMATS, load_format
from traces.page_format.base import PAGE_FORMATS, load_page_format


@each_of(PAGE_FORMATS)
class TestPageTraces(PageTraceContract):
    """Every member."""


@pytest.mark.parametrize("name", PAGE_FORMATS.names())
def test_a_file_is_recognised_packed_or_not(name: str, tmp_path: Path) -> None:
    """But Parquet's files pack their own parts."""
    data, wanted = page_example(name)
    for pack in (bytes, *(() if name == "parquet" else PACKERS.values())):
        (tmp_path / "own").write_bytes(pack(data))
        trace = page_trace(tmp_path / "own")
        assert trace.page_format == name and list_references(trace.batches()) == wanted


@pytest.mark.parametrize("name", FORMATS.names())
def test_traces_of_requests_are_not_taken_for_traces_of_pages(name: str, tmp_path: Path) -> None:
    """Except oracleGeneral, whose records are references to objects as well."""
    if example := load_format(name).EXAMPLE:
        (tmp_path / "requests").write_bytes(example.content)
        assert page_trace(tmp_path / "requests").page_format == ("oracle-general" if name == "oracle-general" else None)


def test_a_column_whose_name_is_no_text_is_damage(tmp_path: Path) -> None:
    damaged, member = page_example("parquet")[0].replace(b"page", b"\xff" * 4), load_page_format("parquet")
    assert is_refused(tmp_path / "damaged", damaged, lambda path: list(member.references(path)))
    assert not member.recognise(tmp_path / "damaged")
