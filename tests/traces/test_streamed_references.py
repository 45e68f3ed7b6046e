"""References go from a generator, or from a file, through numbers of pages to a policy in memory that their count does not change."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from flashsim.core.kernel import is_compiled
from flashsim.core.units import MIB
from tests.peak_memory import PEAK_MEMORY

_MEASURED = (
    PEAK_MEMORY
    + """
import sys
from algorithms.replacement.base import replacement_policy
from flashsim.core.page_numbers import PageNumbers
from flashsim.storage.pool.simulation import Simulation
from pathlib import Path
from traces.page_format import lines
from traces.file.page_trace import page_trace
from traces.references import generated_trace

source = generated_trace(f"zipf:pages={sys.argv[1]},references={sys.argv[2]},write-share=0.2")
if sys.argv[3]:
    lines.write(source.batches(), Path(sys.argv[3]))
    source = page_trace(sys.argv[3])
pool, numbers = Simulation(replacement_policy("lru"), int(sys.argv[1]) // 10), PageNumbers()
for batch in source.batches():
    pool.refer(numbers.number(batch.pages), None if batch.writes is None else batch.writes.view("u1"))
counts = pool.counts
assert counts.first == len(numbers) <= int(sys.argv[1])
print(counts.references, counts.writes, len(numbers), peak_memory())
"""
)


_LONG = [pytest.mark.deep, pytest.mark.timeout(1200)]


def measured(pages: int, references: int, path: str) -> tuple[int, int, int, int]:
    """References, writes, distinct pages, and bytes."""
    command = [sys.executable, "-c", _MEASURED, str(pages), str(references), path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    counted, writes, distinct, memory = map(int, done.stdout.split())
    return counted, writes, distinct, memory


@pytest.mark.skipif(not is_compiled(), reason="millions of references take the compiled form")
@pytest.mark.parametrize(
    ("few", "many", "kind"),
    [(5 * 10**6, 10**7, "file"), pytest.param(10**7, 10**8, "file", marks=_LONG), pytest.param(10**7, 10**8, "generated", marks=_LONG)],
)
def test_memory_does_not_grow_with_references(few: int, many: int, kind: str, tmp_path: Path) -> None:
    """Beyond 64 bytes for each page that is seen only in the longer run, and what allocators keep; the references take 40 MB and more."""
    path = str(tmp_path / "ids") if kind == "file" else ""
    told = [measured(10**5 if many < 10**8 else 10**6, count, path) for count in (few, many)]
    assert [counted for counted, _, _, _ in told] == [few, many]
    assert bool(told[1][1]) == (kind == "generated"), "an id a line does not say what is written"
    (_, _, seen, memory), (_, _, more, larger) = told
    assert larger - memory < 64 * (more - seen) + 32 * MIB
