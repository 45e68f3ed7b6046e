"""Every page format, and row formats that no page holds."""

from __future__ import annotations

import pytest

from flashsim.core.errors import InvalidParameterError, MissingFileError, UnknownNameError
from flashsim.storage.layout import Layout
from flashsim.storage.page import PAGE_FORMATS
from flashsim.storage.rows import FixedRows
from flashsim.testing.contracts.storage import PageContract
from tests.contract.members import each_of


@each_of(PAGE_FORMATS)
class TestPageFormats(PageContract):
    """Every member."""


def test_impossible_row_formats_and_unknown_page_formats_are_refused() -> None:
    with pytest.raises(InvalidParameterError, match="width of key: 5 B, but it must be one of 1, 2, 3, 4, 6, 8"):
        FixedRows("digest", {"key": 5})
    with pytest.raises(InvalidParameterError, match="columns: 0"):
        FixedRows("nothing", {})
    with pytest.raises(InvalidParameterError, match="columns: 127, but it must have 1 to 126"):
        FixedRows("wide", {f"c{number}": 1 for number in range(127)})
    rows = FixedRows("digest", {"key": 4})
    with pytest.raises(UnknownNameError, match="sqlite"):
        Layout(rows, 512, "sqlight")
    with pytest.raises(MissingFileError, match=r"mine\.py"):
        Layout(rows, 512, "mine.py")
