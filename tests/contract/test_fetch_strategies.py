"""Every page-fetch strategy: all entries of a join index are joined once, in frames that hold their pages, and it comes to an end."""

from __future__ import annotations

import numpy as np
import pytest

from algorithms.fetching.base import FETCHING, FetchOptions, FetchParameters
from flashsim.core.errors import InvalidParameterError
from flashsim.testing.contracts.fetching import FetchContract, count_fetches
from flashsim.testing.strict_driver import relation_file

MINE = """
import numpy as np
from algorithms.late_fetch.page_cache import Schedule

def fetch(index, cache, parameters):
    while (entries := (yield from index.next())) is not None:
        for r_row, s_row in zip(entries.r_rows, entries.s_rows):
            pages = np.concatenate(cache.pages_of(np.array([r_row]), np.array([s_row])))
            yield from cache.follow(Schedule(pages, np.array([-1, -1]), np.array([r_row]), np.array([s_row]), np.array([2])))
            cache.resize(cache.frames, pages)
"""


@pytest.fixture(scope="class", params=[*FETCHING.names(), "mine.py"])
def each_member(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Every member, and one of a user's own."""
    request.cls.member = request.param
    if request.param == "mine.py":
        path = tmp_path_factory.mktemp("own") / "mine.py"
        path.write_text(MINE, encoding="utf-8")
        request.cls.member = str(path)


@pytest.mark.usefixtures("each_member")
class TestFetching(FetchContract):
    @pytest.mark.deep
    @pytest.mark.parametrize("same_order", [True, False])
    def test_published_size(self, same_order: bool) -> None:
        """Both inputs of 8,192 pages of 25 rows each, half of which join, and 512 pages of memory."""
        random, rows = np.random.default_rng(3), 8192 * 25
        files = [relation_file(name, np.arange(rows), record=156, page_size=4096) for name in "rs"]
        assert [file.pages for file in files] == [8192, 8192]
        r_rows = random.permutation(rows)
        index = np.column_stack([r_rows, r_rows if same_order else random.permutation(rows)])[random.random(rows) < 0.5]
        if self.name.endswith(".py"):
            index = index[:1000]
        count_fetches(self.name, (files[0], files[1]), index, FetchParameters(512), 1 << 16)


@pytest.mark.parametrize(("memory", "k"), [(1, 1.0), (8, 0.0), (8, -1.0), (8, float("inf")), (8, float("nan"))])
def test_unfit_parameters_are_refused(memory: int, k: float) -> None:
    with pytest.raises(InvalidParameterError, match="frames: 1, but two" if memory == 1 else "k: "):
        FetchParameters(memory, FetchOptions(k=k))
