"""The logs of fio's own engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

from traces.replay.fio import _log


def test_a_closed_log_is_read_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow's reader goes on for a moment after it is closed: what it reads has no descriptor that another file could get."""
    (tmp_path / "log").write_text("1, 2000, 0, 4096, 512, 0\n3, 500, 1, 512, 0, 0\n")
    read, opened = pyarrow.csv.open_csv, list[Any]()
    monkeypatch.setattr(pyarrow.csv, "open_csv", lambda source, **options: opened.append(source) or read(source, **options))
    rows = [(batch.num_rows, at.tolist(), latency.tolist()) for batch, at, latency in _log(tmp_path / "log")]
    assert rows == [(2, [1_000_000, 3_000_000], [2000, 500])]
    assert [type(source) for source in opened] == [pa.MemoryMappedFile]
