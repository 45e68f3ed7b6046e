"""What a text names as references: files, generators, and our own joins, whose pages are those that a driver counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import flashsim as fs
from algorithms.joins.base import plan
from flashsim.apps.caching.sources import JoinTrace, of_text
from flashsim.core.errors import FlashsimError
from flashsim.core.units import MIB
from flashsim.device import presets
from flashsim.execution.drivers import trace_only
from flashsim.experiments.runs.joining import divide, lay_out, memory_pages, open_pair
from tests.cases import with_each

PAIR = "r=do2009:customer@0.02,s=do2009:orders@0.02,on=c_custkey=o_custkey,memory=1MiB"


@pytest.mark.parametrize("algorithm", ["bnl", "grace-hash", "sort-merge"])
def test_references_of_a_join_are_the_pages_that_it_reads_and_writes(algorithm: str) -> None:
    trace = of_text(f"join:algorithm={algorithm},{PAIR}", 8192)
    assert isinstance(trace, JoinTrace)
    (batch,) = trace.batches()
    files = tuple(lay_out(relation, 8192) for relation in open_pair("do2009:customer@0.02", "do2009:orders@0.02", "c_custkey=o_custkey"))
    assert trace.setting.memory == memory_pages(MIB, 8192)
    parameters, allocation = divide(trace.setting, (files[0], files[1]), presets.load(trace.join.buffers_for))
    total = trace_only(plan(algorithm, *files, parameters, allocation), files).total()
    assert len(batch.pages) == total.pages
    assert batch.writes is not None
    first_reads = np.unique(batch.pages[~batch.writes])
    assert len(first_reads) >= sum(file.pages for file in files), "every page of both relations is read"
    assert set(batch.pages[batch.writes].tolist()) <= set(first_reads.tolist()), "what is written is read again"


def test_generators_take_the_seed_and_the_page_size_unless_told_themselves() -> None:
    def pages(text: str, **more: int) -> list[int]:
        return next(of_text(text, more.get("page_size", 4096), more.get("seed", 0)).batches()).pages[:50].tolist()

    assert pages("zipf:pages=1000", seed=3) == pages("zipf:pages=1000,seed=3") == pages("zipf:pages=1000,seed=3", seed=4)
    assert pages("zipf:pages=1000", seed=3) != pages("zipf:pages=1000")
    assert pages("tpch:scale=0.01", page_size=8192) == pages("tpch:scale=0.01,page-size=8KiB") != pages("tpch:scale=0.01")


def test_a_file_counts_more_than_a_generator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("zipf", "zipf:pages=1"):
        Path(name).write_text("5\n6\n")
        assert next(of_text(name, 4096).batches()).pages.tolist() == [5, 6]


def test_a_generator_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "import numpy as np\nfrom dataclasses import dataclass\nfrom flashsim.core.parameters import count\n"
        "from traces.references.base import Independent\nTITLE = 'one page'\n\n"
        "@dataclass(frozen=True, kw_only=True)\nclass Stream(Independent):\n    page: int = count('its number')\n\n"
        "    def pages_from(self, first, size, random):\n        return np.full(size, self.page)\n"
    )
    assert next(of_text(f"{path}:page=7,references=3", 4096).batches()).pages.tolist() == [7, 7, 7]


@with_each(
    ("text", "told"),
    [
        ("nothing", "trace: no file at nothing"),
        ("zip:pages=3", "trace: 'zip' is unknown; did you mean zipf"),
        ("zipf:pages=0", "pages: 0, but it must be at least 1"),
        ("join:algorithm=bnl", "r: missing"),
        (f"join:algorithm=bn,{PAIR}", "join: 'bn' is unknown; did you mean bnl"),
        (f"join:algorithm=bnl,{PAIR},fetch=naive", "fetch: naive, but bnl does not take it"),
        (f"join:algorithm=bnl,{PAIR.replace('1MiB', '1KiB')}", "memory: 1 KiB, but a page takes 4 KiB"),
    ],
)
def test_what_is_none_is_one_line(text: str, told: str) -> None:
    with pytest.raises(FlashsimError, match=told) as refused:
        of_text(text, 4096)
    assert "\n" not in str(refused.value)


@with_each(
    ("pages", "hits"),
    [([2**63, 2**63 + 1, -1, 2**63], 1), ([1, "1", 1], 1), ([2**53, 2**53 + 1, 0.5, 2**53], 1), (["a", "b", "a", "a"], 2)],
)
def test_pages_of_a_list_are_one_only_if_they_are_equal(pages: list[object], hits: int) -> None:
    told = fs.cache(pages, policy="lru", size=10).summary()
    assert told.hits.item() == hits
