"""Curves of policies are what simulations of every size find, exact, and in miniature within the error that they tell."""

from __future__ import annotations

import numpy as np
import pytest

import flashsim as fs
from flashsim.apps.caching.curves import curves
from flashsim.apps.caching.running import CacheStudy
from flashsim.apps.caching.session import execute
from flashsim.apps.caching.sources import ArrayTrace, of_values
from flashsim.core.errors import FlashsimError
from tests.cases import with_each

POLICIES = ["lru", "opt", "mru", "fifo", "clock", "2q"]
SIZES = ["2%..90%", "100%", "37pages"]


def hot_and_cold(count: int, pages: int, seed: int) -> ArrayTrace:
    """Half of the references go to a twentieth of the pages; a third of them write."""
    rng = np.random.default_rng(seed)
    ids = np.where(rng.random(count) < 0.5, rng.integers(0, pages // 20, count), rng.integers(0, pages, count))
    return of_values(rng.permutation(pages)[ids] - 5, rng.random(count) < 1 / 3)


def test_exact_curves_are_what_is_simulated() -> None:
    source = hot_and_cold(12_000, 1500, 1)
    asked = CacheStudy(POLICIES, SIZES, 4096, limit=10_000)
    told, simulated = curves(source, asked), execute(source, asked)
    assert list(told.curves) == POLICIES and told.rate == 1
    misses = {(run.policy, run.size.frames): run.counts.misses for run in simulated.runs}
    assert {(row["policy"], row["pages"]): row["misses"] for row in told.rows()} == misses
    assert (told.references, told.pages) == (simulated.references, simulated.pages)
    assert not any(row["error"] for row in told.rows())


def test_a_tenth_of_the_pages_in_miniature() -> None:
    """Of 12,000 pages, 600 of them hot: nine of ten ratios are within the error that is told; in large pools it is below 2.5 points."""
    source = hot_and_cold(120_000, 12_000, 2)
    asked = CacheStudy(POLICIES, ["5%..45%,50%,70%,90%"], 4096)
    told, exact = curves(source, asked, 0.1, 0), execute(source, asked)
    assert told.rate == pytest.approx(0.1) and told.pages == pytest.approx(exact.pages, rel=0.02)
    ratios = {(run.policy, run.size.label): 1 - run.hit_ratio for run in exact.runs}
    off = np.array([abs(row["miss_ratio"] - ratios[row["policy"], row["size"]]) for row in told.rows()])
    error, share, mru = (np.array([row[name] for row in told.rows()]) for name in ("error", "share", "policy"))
    assert np.mean(off <= error) >= 0.9
    large = (share >= 0.49) & (mru != "mru")  # which keeps what it had first, and so misses the hot pages that came too late
    assert np.all(error[large] < 0.025) and np.all(off[large] < 0.01)


def test_few_pages_are_all_looked_at() -> None:
    source = hot_and_cold(5000, 500, 3)
    asked = CacheStudy(["lru", "fifo"], ["10%..90%"], 4096)
    assert curves(source, asked, 0.01).rows() == curves(source, asked).rows()
    halved = curves(source, asked, 0.0, 300)
    assert halved.rate == 0.5 and halved.pages == pytest.approx(500, rel=0.1)


def test_percentiles_of_reuse_distances() -> None:
    """A loop comes back to a page after all others."""
    told = curves(of_values(np.tile(np.arange(20), 5)), CacheStudy(["lru"], ["50%"], 4096)).as_dict()
    assert told["reuse"] == {"p50": 19, "p90": 19, "p99": 19}
    assert told["curves"][0]["miss_ratio"] == 1


@with_each(
    ("asked", "sample", "least", "message"),
    [
        ({}, 1.5, 0, "sample: 1.5, but a share of pages above 0 and up to 1 is needed"),
        ({}, 0.0, 0, "sample: 0, but a share of pages above 0 and up to 1 is needed"),
        ({"sizes": ["0pages"]}, 1, 0, "a pool holds at least one page"),
        ({"policies": ["lruu"]}, 1, 0, "did you mean"),
        ({"policies": ["fifo"], "sizes": ["3pages"]}, 0.1, 0, "a sample of 10.00% of the pages needs pools of 10"),
    ],
)
def test_what_is_wrong_is_told(asked: dict[str, list[str]], sample: float, least: int, message: str) -> None:
    with pytest.raises(FlashsimError) as told:
        curves(hot_and_cold(2000, 400, 4), CacheStudy(**{"policies": ["lru"], "sizes": ["10%"], "page_size": 4096} | asked), sample, least)
    assert message in str(told.value)


def test_no_references() -> None:
    with pytest.raises(FlashsimError, match="it references no page"):
        curves(of_values(np.zeros(0, np.int64)), CacheStudy(["lru"], ["10%"], 4096))


def test_a_sample_of_so_many_pages_at_most() -> None:
    """Of 12,000 pages at most 1,000: a sixteenth, 750."""
    source = hot_and_cold(60_000, 12_000, 5)
    told = fs.cache((source.pages, source.writes), policy="lru", size=10).curve(size="50%", sample="1000pages")
    assert told.result.rate == 1 / 16 and told.provenance["parameters"]["sample"] == "1000pages"
    with pytest.raises(FlashsimError, match="sample: '0pages', but a share"):
        fs.cache([1, 2], policy="lru", size=1).curve(sample="0pages")
