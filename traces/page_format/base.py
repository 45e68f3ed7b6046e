"""What every format of page traces provides: references in batches, in constant memory.

Formats of requests to devices are another family (`traces.format`); `traces.file.page_trace` reads both.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from flashsim.core.errors import InvalidParameterError
from flashsim.core.members import Family, optional
from flashsim.core.transactions import ReferenceBatches


class PageExample(NamedTuple):
    """A small file of a format, the ids in it, and which of its references write; None where it does not say."""

    content: bytes
    pages: Sequence[int]
    writes: Sequence[bool] | None = None


class PageFormat(Protocol):
    """A member's module."""

    TITLE: str  # a line that says what it is
    EXAMPLE: PageExample | None = None  # for the tests of the family; a format that can be written does without
    GENERIC: bool = False  # it is only recognised where no other format fits

    def recognise(self, path: Path) -> bool:
        """Whether the file has this format, judged by its first bytes."""

    def references(self, path: Path) -> ReferenceBatches:
        """The file's references, in its order.

        Raises
        ------
        DamagedFileError
            Names the file, and the line or record.
        """

    @optional
    def configured(self, options: str) -> PageFormat:
        """The same format, told what its files do not say of themselves.

        Raises
        ------
        InvalidParameterError
            It takes no such options.
        """
        raise InvalidParameterError("page trace format", repr(options), "only csv takes options")

    @optional
    def write(self, batches: ReferenceBatches, path: Path) -> None:
        """Write references into a file.

        Raises
        ------
        InvalidParameterError
            It can only be read.
        """
        raise InvalidParameterError("page trace format", self.TITLE, "it can only be read; lines and parquet can be written")


PAGE_FORMATS = Family("traces.page_format", "page trace format", PageFormat)


def load_page_format(name: str) -> PageFormat:
    """A member, by name or as the path of a Python file, or as ``name:options`` (`PageFormat.configured`)."""
    member, colon, options = name.partition(":")
    return PAGE_FORMATS.load(member).configured(options) if colon else PAGE_FORMATS.load(name)
