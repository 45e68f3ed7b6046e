"""TPC-H's tables: generated once, kept, and shaped as the specification says."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flashsim.core.errors import FlashsimError, MissingExtraError, UnknownNameError
from flashsim.storage.source import open_source, tpch

ROWS = {"region": 5, "nation": 25, "supplier": 100, "customer": 1500, "part": 2000, "partsupp": 8000, "orders": 15_000}


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tpch, "cache_of", lambda name: folder)
        yield folder


@pytest.fixture(scope="module")
def at_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """The generator's calls, one for each table, answered from one for all: it draws 300 MB of text before the first row."""
    made, genuine = tmp_path_factory.mktemp("made"), subprocess.run
    processes: list[Any] = []

    def run(command: list[str], **options: Any) -> Any:
        *words, folder = command
        place = words.index("--tables") + 1
        table, words[place] = words[place], ",".join(tpch.TABLES)
        if not processes:
            processes.append(genuine([*words, str(made)], **options))
        shutil.move(made / f"{table}.parquet", folder)
        return processes[0]

    return run


@pytest.mark.parametrize("table", tpch.TABLES)
def test_every_table_has_the_specified_rows(table: str, at_once: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tpch.subprocess, "run", at_once)
    source = open_source(f"tpch:{table}@0.01")
    assert source.name == table
    assert source.rows == ROWS[table] if table != "lineitem" else 4 * 15_000 * 0.98 < source.rows < 4 * 15_000 * 1.02


def test_a_table_is_generated_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = open_source("tpch:nation@0.02").take(np.arange(25))
    monkeypatch.setattr(tpch, "_generate", lambda *_: pytest.fail("generated again"))
    assert open_source("tpch:nation@0.020").take(np.arange(25)).equals(first)
    assert all(path.suffix == ".parquet" for path in cache.iterdir())


def test_every_third_customer_places_no_order() -> None:
    """The rule that the paper's layout draws its keys by, in the generator's own output."""
    keys = np.asarray(open_source("tpch:orders@0.01").key("o_custkey"))
    shares = np.bincount(keys % 3, minlength=3) / len(keys)
    assert shares[0] == 0 and abs(shares[1] - 2 / 3) < 5 * np.sqrt(2 / 9 / len(keys))


def test_without_the_generator_the_message_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tpch.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingExtraError, match=r"flashsim\[tpch\]"):
        open_source("tpch:part@0.03")


def test_a_failing_generator_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch, cache: Path, tmp_path: Path) -> None:
    program = tmp_path / "tpchgen-cli"
    program.write_text("#!/bin/sh\necho no room >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(tpch, "_generator", lambda: str(program))
    before = sorted(cache.iterdir())
    with pytest.raises(FlashsimError, match="the generator failed: no room"):
        open_source("tpch:part@0.04")
    assert sorted(cache.iterdir()) == before


def test_unknown_tables_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean orders"):
        open_source("tpch:order@1")
