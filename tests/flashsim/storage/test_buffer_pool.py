"""A buffer pool's books: frames, pins, types and counts, for many pages of several files."""

from __future__ import annotations

import numpy as np
import pytest

from algorithms.replacement.base import REPLACEMENT, replacement_policy
from flashsim.core.errors import InvalidParameterError
from flashsim.core.page_numbers import PageNumbers
from flashsim.core.replacement import FLAGS, TYPE_SHIFT
from flashsim.storage.content import token_file
from flashsim.storage.pool.buffer_pool import BufferPool
from flashsim.storage.pool.simulation import Simulation

POLICIES = [name for name in REPLACEMENT.names() if not REPLACEMENT.load(name).FUTURE]
FILES = [token_file(name, pages, 512) for name, pages in (("a", 3000), ("b", 1), ("c", 2000))]


@pytest.mark.parametrize("policy", POLICIES)
def test_frames_are_those_of_resident_pages_while_some_are_held(policy: str) -> None:
    """Never one for two pages, never a page that is held out of its frame; and as long as none is held, a simulation's counts."""
    rng = np.random.default_rng(7)
    pool, alone, numbers = BufferPool(replacement_policy(policy), 700, FILES), Simulation(replacement_policy(policy), 700), PageNumbers()
    every = np.arange(pool.pages)
    for turn in range(6):
        pages, writes = (rng.zipf(1.2, 4000) * 31 + turn) % pool.pages, (rng.random(4000) < 0.3).astype(np.uint8)
        made = pool.refer(pages, writes)
        alone.refer(numbers.number(pages), writes)
        assert pool.counts == alone.counts and len(made.pages) == made.after[-1]
        _check_frames(pool, every)
    held = np.unique(rng.choice(pool.pages, 650, replace=False))
    pool.fix(held)
    frames = pool.frames_of(held)
    for _ in range(4):
        pool.refer(rng.integers(0, pool.pages, 2000))
        assert pool.resident(held).all() and np.array_equal(pool.frames_of(held), frames)
        _check_frames(pool, every)
    pool.unfix(held)
    pool.forget(clean := np.setdiff1d(every[pool.resident(every)], pool.dirty_pages()))
    assert pool.used_frames == 700 - len(clean) and not pool.resident(clean).any()
    pool.refer(rng.integers(0, pool.pages, 3000))
    _check_frames(pool, every)


def _check_frames(pool: BufferPool, every: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
    here = every[pool.resident(every)]
    frames = pool.frames_of(here)
    assert len(here) == len(np.unique(frames)) == pool.used_frames <= pool.frames
    assert frames.min() >= 0 and frames.max() < pool.frames


def test_policies_see_of_which_file_a_page_is() -> None:
    pool = BufferPool(replacement_policy("lru"), 10, FILES)
    pages = np.concatenate([pool.numbers_of(FILES[2], np.array([7, 1999])), pool.numbers_of(FILES[1], np.array([0])), np.array([5])])
    pool.refer(pages)
    index, own = pool.places_of(pages)
    assert index.tolist() == [2, 2, 1, 0] and own.tolist() == [7, 1999, 0, 5]
    assert (pool.state.pages[8:12, FLAGS] >> TYPE_SHIFT).tolist() == [2, 2, 1, 0]
    assert [pool.name_of(page) for page in pages.tolist()] == ["page 7 of c", "page 1999 of c", "page 0 of b", "page 5 of a"]


def test_a_page_is_held_as_often_as_it_was_fixed() -> None:
    pool, page, others = BufferPool(replacement_policy("lru"), 2, FILES), np.array([4]), np.arange(10, 20)
    pool.fix(np.array([4, 4]))
    pool.fix(page)
    for _ in range(3):
        pool.refer(others)
        assert pool.resident(page).all()
        pool.unfix(page)
    with pytest.raises(InvalidParameterError, match="unfix: page 4 of a, but it is not fixed"):
        pool.unfix(page)
    pool.refer(others)
    assert not pool.resident(page).any()


def test_what_is_refused_leaves_everything_as_it_was() -> None:
    pool = BufferPool(replacement_policy("lru"), 3, FILES)
    pool.fix(np.array([1, 2]))
    before = pool.counts, pool.dirty_pages().tolist(), pool.resident(np.arange(10)).tolist()
    for call, told in [
        (lambda: pool.fix(np.array([2, 3, 4])), "fix: 3 pages, but 1 of 3 frames are not fixed"),
        (lambda: pool.unfix(np.array([1, 2, 2])), "unfix: page 2 of a, but it is not fixed"),
        (lambda: pool.change(np.array([1, 3])), "change: page 3 of a, but it is not fixed"),
        (lambda: pool.forget(np.array([7, 2])), "forget: page 2 of a, but it is fixed"),
    ]:
        with pytest.raises(InvalidParameterError, match=told):
            call()
    assert before == (pool.counts, pool.dirty_pages().tolist(), pool.resident(np.arange(10)).tolist())
    pool.fix(np.array([3]))
    with pytest.raises(InvalidParameterError, match="fix: 2 pages, but 0 of 3 frames are not fixed"):
        pool.refer(np.array([1, 9]))
    pool.refer(np.array([1, 2, 3]))
    pool.unfix(np.array([1, 2, 3]))
