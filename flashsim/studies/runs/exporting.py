"""A relation as files that another program reads."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from flashsim.core.protocols import Progress
from flashsim.storage.heap_file import HeapFile, heap_file
from flashsim.storage.page import PAGE_FORMATS
from flashsim.storage.relation import Relation
from flashsim.storage.source import Source


@dataclass(frozen=True)
class Exported:
    """What was written.

    Parameters
    ----------
    file
        The relation, as it lies on its pages.
    files
        Bytes of each file, by name.
    """

    file: HeapFile
    files: dict[str, int]

    def as_dict(self) -> dict[str, Any]:
        layout = {"page_format": self.file.layout.page_format, "page_size": self.file.page_size}
        relation = {"name": self.file.name, "rows": self.file.tuples, "pages": self.file.pages}
        return {"relation": relation | layout, "files": self.files}


def lay_out_rows(source: Source, page_size: int, page_format: str) -> HeapFile:
    """A relation in row order, each page filled before the next; no column is a key."""
    return heap_file(Relation(source.name, source.names[0], np.zeros(source.rows, np.int32), source), page_size, page_format=page_format)


def export_relation(file: HeapFile, folder: Path, progress: Progress | None = None) -> Exported:
    """Write a relation's files into an empty folder."""
    PAGE_FORMATS.load(file.layout.page_format).write_files(file, folder, progress)
    return Exported(file, {path.name: path.stat().st_size for path in sorted(folder.iterdir())})
