"""Policies on references from the front door and from the command line: references in every form, counts, comparisons and refusals."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import flashsim as fs
from algorithms.replacement.base import REPLACEMENT
from flashsim.apps.caching.comparison import interval
from flashsim.apps.caching.running import parse_sizes, pool_sizes
from flashsim.core.errors import FlashsimError
from tests.cases import with_each
from tests.commands import Run
from tests.html_page import whole
from tests.peak_memory import PEAK_MEMORY
from traces.references import generated_trace
from traces.references.base import GeneratedTrace

ROOT = Path(__file__).parents[3]
IDS = np.random.default_rng(3).zipf(1.3, 4000) % 400
WRITES = np.random.default_rng(4).random(4000) < 0.3


def lru(ids: Any, writes: Any, frames: int, warm_up: int = 0) -> dict[str, int]:
    """Least recently used by a dictionary."""
    held: OrderedDict[int, bool] = OrderedDict()
    seen: set[int] = set()
    told = dict.fromkeys(("hits", "misses", "first", "again", "read_misses", "write_misses", "evictions", "write_backs"), 0)
    for number, (page, write) in enumerate(zip(ids.tolist(), writes.tolist(), strict=True)):
        if number == warm_up:
            told = dict.fromkeys(told, 0)
        if page in held:
            told["hits"] += 1
            held[page] |= write
            held.move_to_end(page)
            continue
        told["misses"] += 1
        told["again" if page in seen else "first"] += 1
        told["write_misses" if write else "read_misses"] += 1
        if len(held) == frames:
            _, dirty = held.popitem(last=False)
            told["evictions"] += 1
            told["write_backs"] += dirty
        held[page] = write
        seen.add(page)
    return told


@pytest.mark.parametrize("warm_up", [0, 1000, "25%"])
def test_counts_equal_a_dictionarys(warm_up: int | str) -> None:
    told = fs.cache((IDS, WRITES), policy="lru", size=["1%..80%", 7], page_size="8KiB", warm_up=warm_up).summary()
    assert len(told) > 8 and (told.pages.diff().dropna() > 0).all()
    for row in told.to_dict("records"):
        expected = lru(IDS, WRITES, row["pages"], 1000 if warm_up else 0)
        assert {name: row[name] for name in expected} == expected
        assert row["hits"] + row["misses"] == row["references"] == 4000 - (1000 if warm_up else 0)
        assert row["bytes_read"] == 8192 * row["misses"] and row["bytes_written"] == 8192 * row["write_backs"]
        assert row["hit_ratio"] == row["hits"] / row["references"] and row["reference_us"] >= 0


@with_each(
    "trace",
    [
        IDS.astype(np.uint16),
        IDS.tolist(),
        pd.Series([f"page {page}" for page in IDS]),
        [f"page {page}" for page in IDS],
        (IDS, np.zeros(4000, np.int8)),
        pd.DataFrame({"page": IDS, "write": False}),
        {"page": IDS},
        pa.table({"page": IDS}),
        -IDS,
        IDS.astype(float),
        pd.Series(IDS, index=IDS[::-1], dtype="Int64"),
        pd.Series(IDS).astype("category"),
        (IDS, pd.Series([False] * 4000, dtype="boolean", index=IDS)),
        pa.chunked_array([IDS[:10], IDS[10:]]),
        IDS.astype(np.uint64) + np.uint64(2**63),
        generated_trace("zipf:pages=400,references=4000"),
        "pages.txt",
        Path("pages.txt"),
    ],
)
def test_references_in_any_form(trace: Any, here: Path) -> None:
    (here / "pages.txt").write_text("\n".join(map(str, IDS)))
    told = fs.cache(trace, policy="lru", size="10%")
    ids = next(trace.batches()).pages if isinstance(trace, GeneratedTrace) else IDS
    assert told.summary().hits.tolist() == [lru(ids, WRITES, told.summary().pages[0])["hits"]]
    assert told.result.pages == len(set(ids.tolist())) and "4,000 references" in repr(told)


def test_requests_are_split_into_pages(here: Path) -> None:
    frame = pd.DataFrame({"operation": ["read", "write", "read"], "offset": [0, 4096, 0], "length": [8192, 4096, 100]})
    frame.to_csv("requests.csv", index=False)
    for trace, columns in ((frame, None), (fs.trace(frame), None), ("requests.csv", "offset=offset:B,length=length:B")):
        told = fs.cache(trace, policy="lru", size=2, columns=columns)
        assert told.summary()[["references", "writes", "hits", "first"]].values.tolist() == [[4, 1, 2, 2]]


def test_generated_references_by_a_seed() -> None:
    told = fs.cache("zipf:pages=300,references=5000,write-share=0.5", policy="lru", seed=1)
    assert told.summary().references.tolist() == [5000] and told.result.pages <= 300 and 2300 < told.result.writes < 2700
    assert fs.cache("zipf:pages=300,references=5000,seed=1", policy="lru").summary().hits.equals(told.summary().hits)
    assert not fs.cache("zipf:pages=300,references=5000", policy="lru", seed=2).summary().hits.equals(told.summary().hits)


def test_a_sample_tells_what_all_pages_tell() -> None:
    trace = "zipf:pages=40000,references=4e5,write-share=0.3,skew=0.8"
    asked: dict[str, Any] = {"policy": ["lru", "sieve", "2q"], "size": "2%,10%,40%", "warm_up": "20%"}
    exact, told = fs.cache(trace, **asked).summary(), fs.cache(trace, **asked, sample="10%")
    summary = told.summary()
    assert "estimated from 0.1 of the pages" in told.title and (summary.references == exact.references).all()
    assert (summary.hits + summary.misses == summary.references).all()
    assert (summary.hit_ratio - exact.hit_ratio).abs().max() < 0.02
    assert ((summary.write_backs / exact.write_backs - 1).abs() < 0.1).all()


def test_all_members_at_once_and_one_at_a_time() -> None:
    told = fs.cache(IDS, size="5%,20%", jobs=2, limit=3000).summary()
    assert told.policy.tolist() == REPLACEMENT.names() * 2 and (told.references == 3000).all()
    alone = fs.cache(IDS[:3000], size="5%,20%", jobs=1).summary()
    assert told.drop(columns="reference_us").equals(alone.drop(columns="reference_us"))
    assert told[told.policy == "opt"].hits.tolist() == told.groupby("pages").hits.max().tolist()


def test_the_smallest_pool_and_one_larger_than_the_trace() -> None:
    told = fs.cache(IDS, size=[1, "1TiB"]).summary()
    assert (told.misses[told["pages"] == 1] >= 4000 - (np.diff(IDS) == 0).sum() - 1).all()
    assert (told.misses[told["pages"] > 1] == len(set(IDS.tolist()))).all() and set(told["pages"]) == {1, 2**28}


def test_pictures_and_comparisons(tmp_path: Path) -> None:
    loop = np.tile(np.arange(100), 60)
    told = fs.cache(loop, policy=["lru", "opt"], size=["20%", "50%"])
    told.plot(tmp_path / "told.svg")
    fs.cache(loop, policy="lru", size="20%").plot(tmp_path / "one.png")
    compared = fs.cache(loop, policy="lru,opt", size="20%,50%").compare("lru,opt")
    compared.plot(tmp_path / "compared.pdf")
    assert {path.name for path in tmp_path.iterdir()} == {"told.svg", "one.png", "compared.pdf"}
    best = compared.best()
    assert best.best.tolist() == ["lru", "lru"] and (best.hit_ratio == 0).all()
    pairs = compared.summary()
    assert pairs.better.tolist() == ["opt", "opt"] and (pairs.difference + pairs.half_width < 0).all()
    assert compared.runs().groupby("pages").hits.max().tolist() == told.summary().groupby("pages").hits.max().tolist()
    assert "6,000 references" in repr(compared)


def test_an_interval_covers_as_often_as_it_says() -> None:
    """Of independent draws, and of correlated ones, whose windows are merged: 95 % of intervals hold the mean, 0."""
    draw = np.random.default_rng(5)
    for correlation, least in ((0.0, 0.93), (0.7, 0.88)):
        covered, merged = 0, 0
        for _ in range(400):
            noise = draw.normal(size=600)
            values = np.zeros(600)
            for place in range(1, 600):
                values[place] = correlation * values[place - 1] + noise[place]
            told = interval(values[88:])
            covered += told.sign == 0
            merged += told.windows < 512
        assert covered / 400 >= least
        assert (merged > 390) == (correlation > 0)


def test_sizes() -> None:
    assert [size.frames for size in pool_sizes(parse_sizes(["1%,25%", "64KiB", "7pages..70pages"]), 1000, 4096)] == [
        7, 9, 10, 12, 15, 16, 19, 25, 32, 42, 54, 70, 250,
    ]  # fmt: skip
    (tiny,) = pool_sizes(parse_sizes("1%"), 3, 4096)
    assert (tiny.frames, tiny.label) == (1, "1 %")


def test_curves_equal_simulations(tmp_path: Path) -> None:
    told = fs.cache(IDS, policy=["lru", "2q"], size="2%..60%")
    drawn = told.curve("lru", "2q", size="2%..60%")
    misses = told.summary().set_index(["policy", "pages"]).misses
    assert drawn.summary().set_index(["policy", "pages"]).misses.astype(int).sort_index().equals(misses.sort_index())
    steps = drawn.all_sizes()
    frames = int(steps.pages[40])
    assert steps.miss_ratio[40] == lru(IDS, WRITES, frames)["misses"] / 4000 and (steps.miss_ratio.diff().dropna() < 0).all()
    drawn.plot(tmp_path / "curve.svg")
    assert "4,000 references" in repr(drawn) and (drawn.summary().error == 0).all()
    sampled = fs.cache("zipf:pages=10000,references=40000", policy="fifo").curve("lru", "fifo", sample="20%", size="10%,50%").summary()
    assert (sampled.error > 0).all() and (sampled.miss_ratio + sampled.error > 0.1).all()
    with pytest.raises(FlashsimError, match="curve of all sizes: '2q' is unknown"):
        drawn.all_sizes("2q")


@pytest.mark.deep
def test_the_curve_s_command_says_and_writes_the_same(flashsim: Run, here: Path) -> None:
    (here / "pages.txt").write_text("\n".join(map(str, IDS)))
    done = flashsim("cache curve pages.txt --size 5%,10% --json told.json --out told.csv --out-dir shown --plot told.pdf")
    assert done.exit_code == 0, done.output
    ours = fs.cache("pages.txt", policy="lru").curve(size="5%,10%")
    told = json.loads((here / "told.json").read_text())
    assert told["curves"] == ours.summary().to_dict("records") and told["all_sizes"]["lru"] == ours.all_sizes().to_dict("list")
    assert pd.read_csv("told.csv").misses.equals(ours.summary().misses)
    assert {path.name for path in (here / "shown").iterdir()} == {"report.html", "curves.csv", "curves.svg"}
    assert "In one pass, of all sizes: lru" in whole((here / "shown" / "report.html").read_text()).words


@pytest.mark.deep
def test_references_stream_in_constant_memory() -> None:
    """Ten times as many references to the same pages take no more memory, by policies that know the future neither."""
    program = f"{PEAK_MEMORY}\nimport sys, flashsim as fs\n"
    program += "fs.cache(f'zipf:pages=100000,references={sys.argv[1]}', policy='lru,lirs,opt', size='5%,20%', jobs=2)\nprint(peak_memory())"
    few, many = (
        int(subprocess.run([sys.executable, "-c", program, count], capture_output=True, text=True, check=True, cwd=ROOT).stdout)
        for count in ("2e6", "2e7")
    )
    assert many - few < 32 << 20


BROKEN = """
class Plain:
    def __init__(self, pool):
        self.pool = pool
    def hit(self, page): ...
    def enter(self, page): ...
    def victim(self, page):
        return page
    def forget(self, page): ...
"""


@with_each(
    "trace, more, told",
    [
        ([], {}, "trace: pages, but it references no page"),
        (3, {}, "trace: an object of type int, but references are needed"),
        (None, {}, "trace: None, but references are needed"),
        ([1, None], {}, "trace: 1, but the page of that reference is missing"),
        (([1, 2], [True]), {}, "2 pages and 1 writes, but both must have the same length"),
        ([[1, 2], [3]], {}, "trace: an object of type list, but references are needed"),
        ([[1, 2], [3, 4]], {}, "trace: an object of type list, but references are needed"),
        ({1, 2}, {}, "trace: an object of type set, but references are needed"),
        (([1, 2], [True, None]), {}, "writes: None, but"),
        (([1, 2], [0, 2]), {}, "writes: 2, but"),
        ("nothing.txt", {}, "no file at nothing.txt"),
        ("ziff:pages=3", {}, "trace: 'ziff' is unknown; did you mean zipf"),
        ("zipf:page=3", {}, "parameter of zipf: 'page' is unknown; did you mean pages"),
        ("zipf:pages=0", {}, "pages: 0, but"),
        (IDS, {"sample": 0}, "sample: 0, but a share above 0"),
        (IDS, {"sample": "110%"}, "sample: '110%', but a share above 0"),
        (IDS, {"sample": "1%", "size": 3}, "sample: 0.01, but a pool of 3 pages is less than a page of the sample"),
        (pd.DataFrame({"x": [1]}), {}, "the frame has no column operation"),
        (IDS, {"size": "0%"}, "size: '0%', but a pool holds at least one page"),
        (IDS, {"size": 0}, "size: '0pages', but a pool holds at least one page"),
        (IDS, {"size": "101%"}, "size: '101%', but a share is at most 100 %"),
        (IDS, {"size": "1%..20pages"}, "a range leads from a smaller size to a larger one of the same unit"),
        (IDS, {"size": "20%..10%"}, "a range leads from"),
        (IDS, {"size": "many"}, "size: 'many', but a share such as 10%"),
        (IDS, {"size": 0.1}, "size: 0.1, but a name"),
        (IDS, {"size": "100B"}, "size: 100 B, but a pool holds from one page of 4 KiB"),
        (IDS, {"size": []}, r"size: \[\], but at least one"),
        (IDS, {"policy": "lrr"}, "replacement policy: 'lrr' is unknown; did you mean lru"),
        (IDS, {"policy": "lru:k=3"}, "parameter of lru: 'k' is unknown"),
        (IDS, {"policy": "mine.py"}, "no file at mine.py"),
        (IDS, {"policy": "empty.py"}, "'empty.py' does not define Plain"),
        (IDS, {"policy": "broken.py"}, "'broken.py' broke its contract at reference [0-9]+: the victim is the page that is about to"),
        (IDS, {"warm_up": 4000}, "warm-up: 4000, but it must leave some of 4,000 references"),
        (IDS, {"warm_up": "a lot"}, "warm-up: 'a lot', but"),
        (IDS, {"limit": 0}, "limit: 0, but"),
        (IDS, {"jobs": 0}, "jobs: 0, but"),
        (IDS, {"seed": -1}, "seed: -1, but"),
        (IDS, {"seed": 2**64}, "seed: 18446744073709551616, but it must be at least 0, and below"),
        (IDS, {"page_size": 4096}, "page_size: 4096, but a size with a unit"),
    ],
)
def test_refused_in_one_line(trace: Any, more: dict[str, Any], told: str, here: Path) -> None:
    (here / "empty.py").write_text("")
    (here / "broken.py").write_text(BROKEN)
    with pytest.raises(FlashsimError, match=told) as refused:
        fs.cache(trace, **{"policy": "lru"} | more)
    assert "\n" not in str(refused.value)


def test_a_comparison_needs_two_and_windows() -> None:
    with pytest.raises(FlashsimError, match="policy: lru, but a comparison needs at least two"):
        fs.cache(IDS, policy="lru").compare()
    with pytest.raises(FlashsimError, match="trace: 5 references, but a comparison needs at least 16"):
        fs.cache(IDS[:5], policy="lru").compare("lru", "opt")


def test_the_command_says_and_writes_the_same(flashsim: Run, here: Path) -> None:
    (here / "pages.txt").write_text("\n".join(map(str, IDS)))
    line = "cache simulate pages.txt --policy lru --policy opt --size 1%..80%"
    done = flashsim(f"{line} --out told.csv --plot told.svg --json told.json --out-dir shown")
    assert done.exit_code == 0, done.output
    ours = fs.cache("pages.txt", policy=["lru", "opt"], size="1%..80%").summary().drop(columns="reference_us")
    assert pd.read_csv("told.csv").drop(columns="reference_us").equals(ours)
    told = json.loads((here / "told.json").read_text())
    assert pd.DataFrame(told["runs"]).drop(columns="reference_us").equals(ours) and told["references"] == 4000
    assert told["provenance"]["parameters"]["policy"] == ["lru", "opt"]
    assert {path.name for path in (here / "shown").iterdir()} == {"report.html", "runs.csv", "miss_ratios.svg"}
    assert "4,000 references" in whole((here / "shown" / "report.html").read_text()).words
    refused = flashsim(f"{line} --out told.csv")
    assert refused.exit_code == 2 and refused.stderr == "flashsim: --out: told.csv exists; add --force to replace it\n"
    assert flashsim(f"{line} --out told.parquet").exit_code == 0 and pd.read_parquet("told.parquet").pages.equals(ours.pages)


@pytest.mark.deep
def test_the_comparison_says_and_writes_the_same(flashsim: Run, here: Path) -> None:
    (here / "pages.txt").write_text("\n".join(map(str, IDS)))
    done = flashsim("cache compare pages.txt lru opt --size 10%,20% --json told.json --out told.csv --out-dir shown --plot told.png")
    assert done.exit_code == 0, done.output
    ours = fs.cache("pages.txt", policy=["lru", "opt"], size="10%,20%").compare()
    told = json.loads((here / "told.json").read_text())
    assert told["pairs"] == ours.summary().to_dict("records") and told["confidence"] == 0.95
    assert pd.read_csv("told.csv").difference.tolist() == pytest.approx(ours.summary().difference)
    assert "differences.svg" in {path.name for path in (here / "shown").iterdir()}
    assert "Who is better" in whole((here / "shown" / "report.html").read_text()).words
