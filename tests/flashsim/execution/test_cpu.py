"""CPU prices: every kind of work has one, table 5 of do2009 follows from the preset, and bad files are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from flashsim.core.errors import DamagedFileError, MissingFileError, UnknownNameError
from flashsim.execution import cpu
from flashsim.execution.requests import Work

PRESET = Path(cpu.__file__).parent / "cpu_presets" / "pentium-d-2009.toml"


def test_kernel_times_of_page_sized_requests_follow_table_5() -> None:
    """Block nested loops with 500 MB reads R once and S twice, a page a request: rows of 2 and 32 KB (do2009, table 5)."""
    model = cpu.load("pentium-d-2009")
    published = {("hdd", 2): 108.4, ("hdd", 32): 8.6, ("ssd", 2): 324.0, ("ssd", 32): 22.4}
    for (kind, kilobytes), seconds in published.items():
        pages = (93_440 + 2 * 655_360) * 8 // kilobytes
        one = model.kernel_times(kind, np.array([kilobytes * 1024]), np.array([1]))[0]
        assert pages * one / 1e9 == pytest.approx(seconds, rel=0.01)


def test_user_time_of_block_nested_loops_follows_table_5() -> None:
    model = cpu.load("pentium-d-2009")
    customers, orders = 4_500_000, 45_000_000
    work = {
        Work.READ_TUPLE: customers + 2 * orders, Work.HASH: customers + 2 * orders, Work.BUILD: customers, Work.PROBE: 2 * orders,
        Work.COMPARE: orders, Work.EMIT: orders,
    }  # fmt: skip
    assert 183.6 <= model.user_time(work) / 1e9 <= 205.5  # the least and the most of the table's ten


def test_every_price_has_a_source() -> None:
    for name in cpu.names():
        model = cpu.load(name)
        assert set(model.user) == set(Work)
        assert all(model.sources.values())


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("[user]", "[users]", DamagedFileError),
        ("probe = ", "prove = ", DamagedFileError),
        ("nanoseconds = 700", "nanoseconds = 'much'", DamagedFileError),
        ("[kernel.ssd]", "[kernel.tape]", DamagedFileError),
        ("[user]", "[user", DamagedFileError),
    ],
)
def test_damaged_presets_are_refused(tmp_path: Path, old: str, new: str, error: type[Exception]) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(PRESET.read_text().replace(old, new))
    with pytest.raises(error, match="mine.toml"):
        cpu.load(str(path))


def test_unknown_presets_are_refused_with_a_hint() -> None:
    with pytest.raises(UnknownNameError, match="did you mean pentium-d-2009"):
        cpu.load("pentium-d-2008")
    with pytest.raises(MissingFileError):
        cpu.load("nowhere.toml")
