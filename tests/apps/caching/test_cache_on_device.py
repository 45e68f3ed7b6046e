"""Policies on devices: what is read and written there are the misses and write-backs that are counted, in virtual time and on a file."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import flashsim as fs
from flashsim.core.errors import FlashsimWarning
from flashsim.core.request import FLUSH, READ, WRITE
from tests.commands import Run

PAGES = 1000 * np.random.default_rng(3).zipf(1.3, 2000) % 400_000
WRITES = np.random.default_rng(4).random(2000) < 0.3
TRACE = (PAGES, WRITES)


@pytest.mark.parametrize("depth", [1, 8])
def test_moved_pages_are_those_that_are_counted(depth: int, tmp_path: Path) -> None:
    """Of every policy, the optimum too, after a warm-up; and so on a real file, where what is read is compared with what was written."""
    told = fs.cache(TRACE, policy="all", size="10%", warm_up=500, device="ocz-core-60gb", depth=depth, cpu=None).summary()
    assert (told.pages_read == told.misses).all() and (told.pages_written == told.write_backs).all()
    assert (told.io_s > 0).all() and (told.cpu_s == 0).all() and (told.total_s == told.io_s).all()
    lru = told[told.policy == "lru"]
    assert lru.pages_flushed.tolist() == [_dirty(size) for size in lru.pages] and (lru.flush_s > 0).all()
    file = fs.cache(
        TRACE, policy=["lru", "opt"], size="10%", warm_up=500, device=tmp_path / "file", depth=depth, allow_write=True
    ).summary()
    same = told[told.policy.isin(["lru", "opt"])]
    for column in ("pages_read", "pages_written", "pages_flushed"):
        assert file[column].tolist() == same[column].tolist()
    assert (file.total_s > 0).all() and not (tmp_path / "file").exists()


def _dirty(frames: int) -> int:
    """Pages that were written since they entered, among those that were referenced last."""
    last = list(dict.fromkeys(PAGES[::-1].tolist()))[:frames]
    dirty = 0
    for page in last:
        uses = np.flatnonzero(page == PAGES)
        gaps = [len(set(PAGES[begin + 1 : end].tolist())) for begin, end in pairwise(uses)]
        entered = max((place + 1 for place, gap in enumerate(gaps) if gap >= frames), default=0)
        dirty += bool(WRITES[uses[entered:]].any())
    return dirty


def test_more_at_once_is_faster_on_flash_and_a_drive_stays_as_it_is() -> None:
    drive = fs.drive("intel-x25e-64gb")
    asked = {"policy": "lru", "size": "5%", "device": drive, "cpu": None}
    one, many, same = (fs.cache(TRACE, **asked, depth=depth).summary() for depth in (1, 32, 1))
    assert one.io_s.equals(same.io_s) and many.io_s[0] < one.io_s[0] / 2
    assert one.pages_read.equals(many.pages_read)


def test_work_is_priced_by_the_cpu_of_the_device_s_year(tmp_path: Path) -> None:
    trace = "zipf:pages=100,references=500,write-share=0.5"
    for device, cpu in (("ocz-core-60gb", "pentium-d-2009"), ("samsung-980-pro-1tb", "epyc-7003-2021")):
        chosen, named, free = (
            fs.cache(trace, policy="lru", size="5%", device=device, **how).summary() for how in ({}, {"cpu": cpu}, {"cpu": None})
        )
        assert chosen.cpu.tolist() == named.cpu.tolist() == [cpu] and free.cpu.tolist() == [None]
        assert chosen.cpu_s.tolist() == named.cpu_s.tolist() and chosen.cpu_s[0] > free.cpu_s[0] == 0
    real = fs.cache(trace, policy="lru", size="5%", device=tmp_path / "file", allow_write=True).summary()
    assert real.cpu.tolist() == [None]
    with pytest.warns(FlashsimWarning, match="^cpu: pentium-d-2009 is of 2009, but samsung-980-pro-1tb of 2020: "):
        fs.cache(trace, policy="lru", size="5%", device="samsung-980-pro-1tb", cpu="pentium-d-2009")


@pytest.mark.deep
def test_the_command_tells_the_same(flashsim: Run, here: Path) -> None:
    trace = "zipf:pages=300,references=2000,write-share=0.5"
    done = flashsim(f"cache simulate {trace} --policy lru --size 5% --device ocz-core-60gb --json told.json --requests requests.parquet")
    assert done.exit_code == 0, done.output
    assert "On ocz-core-60gb, CPU pentium-d-2009\n" in done.output
    told = json.loads((here / "told.json").read_text())
    ours = fs.cache(trace, policy="lru", size="5%", device="ocz-core-60gb").summary()
    assert [told["runs"][0][name] for name in ("total_s", "flush_s")] == ours[["total_s", "flush_s"]].values.tolist()[0]
    recorded = pq.read_table(here / "requests.parquet").to_pandas()
    assert (recorded.operation == READ).sum() == told["runs"][0]["misses"] and (recorded.operation == FLUSH).sum() == 1
    moved = told["runs"][0]["write_backs"] + told["runs"][0]["pages_flushed"]
    assert recorded.length[recorded.operation == WRITE].sum() == 4096 * moved
    (here / "device").write_bytes(b"mine")
    for line, said in [
        ("--device ./device", "allow it with --allow-write"),
        ("--device ./device --allow-write", "--force"),
        ("--device ./new", "allow-write"),
        ("--device ocz-core-60g", "did you mean ocz-core-60gb"),
        ("--device ocz-core-60gb --depth 0", "depth: 0"),
        ("--device ocz-core-60gb --sample 10%", "sample: 0.1, but a device serves all pages"),
        ("--requests r.parquet", "--requests: it needs --device"),
        ("--size 30% --device ocz-core-60gb --requests r.parquet", "requests: 2 runs, but those of one policy at one size are recorded"),
        ("--device ocz-core-60gb --page-size 100B", "--page-size: 100 B"),
        ("--device ./pages.txt --allow-write --force", "is the trace, and would be overwritten"),
    ]:
        (here / "pages.txt").write_text("1\n2\n3\n")
        done = flashsim(f"cache simulate pages.txt --policy lru --size 50% {line}")
        assert (done.exit_code, done.stdout) == (2, ""), line
        assert said in done.stderr and done.stderr.count("\n") == 1, (line, done.stderr)
    assert (here / "device").read_bytes() == b"mine" and not (here / "new").exists()


def test_a_policy_in_its_plain_form(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from algorithms.replacement.lru import Plain\n", encoding="utf-8")
    told = fs.cache(TRACE, policy=[tmp_path / "mine.py", "lru"], size="10%", device="ocz-core-60gb").summary()
    assert told.total_s[0] == told.total_s[1] and told.flush_s[0] == told.flush_s[1]
