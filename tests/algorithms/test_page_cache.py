"""The page cache follows schedules, emits the rows of the pages that it fetched, and refuses what cannot be."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from algorithms.late_fetch.page_cache import PageCache, Schedule
from flashsim.core.errors import FlashsimError, InvalidParameterError
from flashsim.execution.requests import Algorithm, Phase
from flashsim.testing.strict_driver import relation_file, run

Numbers = npt.NDArray[np.int64]


def _cache(frames: int, most: int | None = None) -> PageCache:
    """Pages 0 to 4 are R's, of 4 rows each, and pages 5 to 9 are S's."""
    cache = PageCache(relation_file("r", np.arange(20)), relation_file("s", np.arange(20)), most or frames)
    cache.resize(frames)
    return cache


def _schedule(pages: list[int], victims: list[int], entries: list[tuple[int, int]], after: list[int]) -> Schedule:
    rows = np.array(entries, np.int64).reshape(-1, 2)
    return Schedule(np.array(pages), np.array(victims), rows[:, 0], rows[:, 1], np.array(after, np.int64))


def _following(cache: PageCache, *schedules: Schedule) -> Algorithm:
    yield Phase("fetch")
    for schedule in schedules:
        yield from cache.follow(schedule)


def test_entries_are_joined_once_their_pages_are_there() -> None:
    cache = _cache(2)
    first = _schedule([0, 5, 6], [-1, -1, 5], [(3, 1), (0, 4)], [2, 3])
    second = _schedule([1], [0], [(1, 7), (4, 7)], [0, 1])
    outcome = run(_following(cache, first, second), memory=2)
    assert outcome.pairs.tolist() == [[3, 1], [0, 4], [1, 7], [4, 7]]
    assert outcome.extents == [("read", "r", 0, 1), ("read", "s", 0, 1), ("read", "s", 1, 1), ("read", "r", 1, 1)]
    assert (cache.fetches, cache.used_frames) == (4, 2)


@pytest.mark.parametrize(
    ("pages", "victims", "entries", "after", "told"),
    [
        ([0, 5, 6], [-1, -1, -1], [], [], "the frames are full"),
        ([0, 0], [-1, -1], [], [], "there already"),
        ([0, 5], [-1, 3], [], [], "replaces is not there"),
        ([0, 5, 6], [-1, -1, 5], [(0, 0)], [3], "not both there"),
        ([0, 5], [-1, -1], [(0, 0)], [3], "1 entries are left"),
    ],
)
def test_a_schedule_that_does_not_hold_is_refused(
    pages: list[int], victims: list[int], entries: list[tuple[int, int]], after: list[int], told: str
) -> None:
    with pytest.raises(FlashsimError, match=told):
        run(_following(_cache(2), _schedule(pages, victims, entries, after)), memory=2)


def test_rows_are_taken_from_their_pages_one_by_one() -> None:
    """An entry whose pages are not there together is joined too, if it says when each is."""
    schedule = _schedule([0, 5, 1, 6], [-1, -1, 0, 5], [(3, 1), (4, 2), (5, 4)], [])
    schedule = Schedule(schedule.pages, schedule.victims, schedule.r_rows, schedule.s_rows, np.array([[1, 2], [3, 3], [3, 4]]))
    outcome = run(_following(_cache(2), schedule), memory=2)
    assert outcome.pairs.tolist() == [[3, 1], [4, 2], [5, 4]]
    with pytest.raises(FlashsimError, match="not both there .entry 1 of 2"):
        late = Schedule(schedule.pages, schedule.victims, schedule.r_rows[:2], schedule.s_rows[:2], np.array([[1, 2], [3, 4]]))
        run(_following(_cache(2), late), memory=2)


def test_a_cache_that_shrinks_drops_pages() -> None:
    cache = _cache(3, 4)
    run(_following(cache, _schedule([0, 5, 6], [-1, -1, -1], [], [])), memory=3)
    with pytest.raises(FlashsimError, match="3 pages are held"):
        cache.resize(2)
    cache.resize(2, np.array([5]))
    assert cache.resident().nonzero()[0].tolist() == [0, 6]
    with pytest.raises(FlashsimError, match="page 5 cannot be dropped"):
        cache.resize(2, np.array([5]))
    cache.resize(4)
    run(_following(cache, _schedule([5, 7], [-1, -1], [(0, 0)], [1])), memory=4)
    assert cache.used_frames == 4


def test_rows_of_one_relation_are_collected_through_one_frame() -> None:
    cache, found = _cache(2), []

    def collecting() -> Algorithm:
        yield Phase("fetch")
        for rows in ([0, 0, 3, 4, 19], [19], [], [7, 19]):
            found.append((yield from cache.collect(np.array(rows, np.int64), of_s=True)).tolist())
            assert cache.used_frames == 1

    outcome = run(collecting(), memory=2)
    assert found == [[0, 0, 3, 4, 19], [19], [], [7, 19]]
    assert [page for _, name, page, _ in outcome.extents if name == "s"] == [0, 1, 4, 1, 4]
    assert len(outcome.pairs) == 0
    with pytest.raises(InvalidParameterError, match="row 20"):
        run(cache.collect(np.array([20]), of_s=False), memory=2)


def test_rows_that_no_relation_has_are_refused() -> None:
    with pytest.raises(InvalidParameterError, match=r"join index: row 20.*r has 20 rows"):
        run(_following(_cache(2), _schedule([0, 5], [-1, -1], [(20, 0)], [2])), memory=2)
    with pytest.raises(InvalidParameterError, match="frames: 1"):
        _cache(1)
