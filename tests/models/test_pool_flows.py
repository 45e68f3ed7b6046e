"""What a pool and an SSD ask of devices by formula, against stacks of pages, pools that are run, and what must be so."""

from __future__ import annotations

import numpy as np
import pytest

from algorithms.replacement.base import replacement_policy
from flashsim.core.errors import UnknownNameError
from flashsim.core.replacement import FIRST_PAGE
from flashsim.storage.pool.reference import TOOK_FREE, WRITE_BACK, PlainPool
from models.extended_pool import Clients, Service, predict
from models.pool_flows import DESIGNS, ReferenceStream, Window, flows, stays
from traces.summary.reuse import ReuseDistances

PAGES, COUNT = 3000, 120_000
WINDOW = Window(COUNT * 4 // 5, COUNT * 9 // 10, COUNT)
DISK, SSD = Service(8 / 1015, 8 / 895, 1 / 26370, 8), Service(1 / 12182, 1 / 12374)


def drawn(seed: int, writes: float = 0.3) -> ReferenceStream:
    """References that fall off as a power."""
    draw = np.random.default_rng(seed)
    pages = (PAGES * draw.random(COUNT) ** 3).astype(np.int64)
    return ReferenceStream(pages, draw.random(COUNT) < writes, np.zeros(COUNT, bool))


@pytest.mark.parametrize("frames", [30, 300, 1500])
def test_lru_misses_what_lies_deeper_in_its_stack(frames: int) -> None:
    references = drawn(1)
    depths = ReuseDistances().add(references.pages)[WINDOW.begin :]
    exact = float(np.mean((depths < 0) | (depths >= frames)))
    missed = flows(stays(references, frames, WINDOW, uses=1), "none", 0, WINDOW).missed
    assert missed == pytest.approx(exact, rel=0.02)


@pytest.mark.parametrize("part", [8, pytest.param(4, marks=pytest.mark.deep)])
def test_lru_2_misses_and_evicts_as_a_pool_that_is_run(part: int) -> None:
    drawn_before, count, frames = drawn(2), COUNT // part, 100
    references, window = drawn_before.until(count), Window(count // 2, count * 3 // 4, count)
    pool, happened = PlainPool(replacement_policy("lru-k"), frames), np.zeros(3)
    for time, (page, write) in enumerate(zip(references.pages.tolist(), references.writes.tolist(), strict=True)):
        missed = page + FIRST_PAGE not in pool.resident
        outcome = pool.refer(page + FIRST_PAGE)
        pool.resident[page + FIRST_PAGE] |= write
        happened += (time >= window.begin) * np.array([missed, outcome > TOOK_FREE, outcome >= WRITE_BACK])
    found = flows(stays(references, frames, window), "none", 0, window)
    counted = happened / (window.end - window.begin)
    assert [found.missed, found.left, found.written] == pytest.approx(counted.tolist(), rel=0.03)


@pytest.mark.parametrize("design", DESIGNS)
def test_pages_are_served_and_written_within_bounds(design: str) -> None:
    references, before = drawn(3), -1.0
    found = stays(references, 200, WINDOW)
    for frames in (0, 100, 500, 2000, PAGES):
        told = flows(found, design, frames, WINDOW, dirty_limit=0.2)
        assert 0 <= told.served_newer <= told.served <= told.missed and told.served >= before - 0.002
        assert told.only_admitted <= told.admitted and told.cleaned <= told.only_admitted
        assert told.written + told.only_admitted == pytest.approx(flows(found, "none", 0, WINDOW).written)  # each version goes somewhere
        before = told.served
    if design in ("dw", "lc"):  # the SSD holds all pages
        assert told.served == pytest.approx(told.missed)


def test_no_page_is_newer_on_an_ssd_whose_limit_is_0_and_none_is_cleaned_if_all_may_be() -> None:
    found = stays(drawn(4), 200, WINDOW)
    none, all_of_them = (flows(found, "lc", PAGES, WINDOW, dirty_limit=limit) for limit in (0.0, 1.0))
    assert none.served_newer == 0 and none.cleaned == pytest.approx(none.only_admitted, rel=0.01)
    assert all_of_them.cleaned == 0 and all_of_them.served_newer > 0
    with pytest.raises(UnknownNameError, match="did you mean"):
        flows(found, "tak", 100, WINDOW)


def test_throughput_is_bounded_by_servers_and_by_clients() -> None:
    found = stays(drawn(5), 200, WINDOW)
    for design in DESIGNS:
        told = flows(found, design, 1000, WINDOW)
        for clients in (1, 16, 64):
            asked = Clients(clients, 20.0, work=0.0005)
            made = predict(told, DISK, SSD, asked, throttle=100)
            assert 0 < made.throughput <= 1 / asked.work and max(made.disk_busy, made.ssd_busy) <= 1 + 1e-6
            waits = 20 * told.served * SSD.read + 20 * (told.missed - told.served) * DISK.read + asked.work
            assert made.throughput <= clients / waits * (1 + 1e-6)


def test_the_throttle_sends_requests_to_the_disk_where_the_ssd_is_slow() -> None:
    told, slow = flows(stays(drawn(6, 0.0), 200, WINDOW), "dw", 2500, WINDOW), Service(0.02, 0.02)
    free, throttled = (predict(told, DISK, slow, Clients(64, 20.0), limit) for limit in (0, 10))
    assert free.bypassed == 0 < throttled.bypassed < 1 and throttled.throughput > free.throughput
