"""Processes that make several runs at a time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from flashsim.experiments.runs.jobs import each


def test_processes_name_files_from_where_they_are_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):  # the second time by processes that were started for the first
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        assert dict(each(os.path.abspath, ["a", "b"], jobs=2)) == {file: str(tmp_path / name / file) for file in ("a", "b")}
