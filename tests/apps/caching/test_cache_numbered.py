"""Numbered traces: what they tell of the future, piece by piece."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashsim.apps.caching import numbered
from flashsim.apps.caching.numbered import NumberedTrace
from flashsim.core.errors import CapacityError
from flashsim.core.transactions import References
from flashsim.testing.pools import next_uses


@given(asked=st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=1, max_size=60), batch=st.integers(1, 20))
def test_next_uses_and_whether_pages_are_written_again(asked: list[tuple[int, bool]], batch: int) -> None:
    pages, writes = np.array([page for page, _ in asked], np.int64), np.array([write for _, write in asked])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbered, "BATCH", batch)
        with NumberedTrace("", iter([References(pages, writes)])) as trace:
            trace.look_ahead()
            numbers = trace.part(0, len(asked))[0].tolist()
            middle = len(asked) // 2
            told = [*trace.next_uses(0, middle).tolist(), *trace.next_uses(middle, len(asked)).tolist()]
    assert told == next_uses(numbers, writes.tolist())


def test_a_future_for_which_there_is_no_room_is_refused_before_it_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbered.shutil, "disk_usage", lambda path: SimpleNamespace(free=3072))
    with NumberedTrace("", iter([References(np.zeros(1024, np.int64), None)])) as trace:
        with pytest.raises(CapacityError, match="policies that know the future need 4 KiB for it in .*, where 3 KiB are free"):
            trace.look_ahead()
        monkeypatch.undo()
        trace.look_ahead()
        assert trace.next_uses(0, 2).tolist() == [2, 3]


def test_an_interrupt_leaves_no_half_of_a_future(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(done: float, total: float, what: str = "") -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(numbered, "BATCH", 5)
    with NumberedTrace("", iter([References(np.arange(12) % 3, None)])) as trace:
        with pytest.raises(KeyboardInterrupt):
            trace.look_ahead(interrupt)
        trace.look_ahead()
        assert trace.next_uses(0, 3).tolist() == [4, 5, 6]
